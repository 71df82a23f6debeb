//! What a family of mechanisms says about itself.

use super::Single;
use crate::cost::Bound;
use crate::loss::Pair;
use crate::params::{Count, Delta, Divergence, Epsilon, Mu, Neighbors, Order, Rho};
use paygo_numeric::Interval;
use paygo_numeric::rounding::mul_up;

/// Everything that paygo knows of one family of mechanisms, in every currency.
///
/// # Contract
/// Each number is proved for every pair of neighboring datasets under each relation in [`Family::neighbors`], in both
/// directions, and also when the mechanism is run conditionally on earlier outputs. Each is an upper bound, rounded up. The
/// Rényi curve and ρ may hold outside an event of probability [`Family::slack`] only. What is not overridden is not known: it
/// is then refused where it is needed, never guessed.
///
/// A family implements this in its own file, together with its fields on the wire. ARCHITECTURE says how to add one.
pub trait Family {
    /// The neighbor relations under which the bounds are proved.
    fn neighbors(&self) -> &'static [Neighbors];

    /// The Rényi divergence at an order; +∞ where none is known.
    fn renyi(&self, order: Order) -> Divergence;

    /// [`Family::renyi`] at many orders, for families that can share the work.
    fn renyi_at(&self, orders: &[Order]) -> Vec<Divergence> {
        orders.iter().map(|&order| self.renyi(order)).collect()
    }

    /// Whether [`Family::renyi`] is a closed form worth asking at every real order, not a chord between some.
    fn is_smooth(&self) -> bool {
        true
    }

    /// Orders that matter to this mechanism in particular.
    fn own_orders(&self) -> &[Order] {
        &[]
    }

    /// ρ in zCDP.
    fn rho(&self) -> Option<Rho> {
        None
    }

    /// ρ of `count` runs.
    fn rho_of(&self, count: Count) -> Option<Bound> {
        self.rho().map(|rho| Bound::repeated(rho.get(), rho.amount(), count))
    }

    /// μ in GDP.
    fn mu(&self) -> Option<Mu> {
        None
    }

    /// μ² of `count` runs.
    fn mu_squared_of(&self, count: Count) -> Option<Bound> {
        self.mu().map(|mu| {
            let square = mul_up(Interval::point(mu.get()).square().hi(), count.to_f64());
            Bound::either(square, mu.amount().square_up().times(count.get()))
        })
    }

    /// An (ε, δ) of its own, both fixed by its parameters.
    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        None
    }

    /// The sum of the ε of `count` runs: basic composition (T2).
    fn epsilon_of(&self, count: Count) -> Option<Bound> {
        self.approximate().map(|(epsilon, _)| Bound::repeated(epsilon.get(), epsilon.amount(), count))
    }

    /// The probability of the event outside which the Rényi curve and ρ hold.
    fn slack(&self) -> Delta {
        self.approximate().map_or(Delta::ZERO, |(_, delta)| delta)
    }

    /// A pair of laws that dominates it at every ε (T41).
    fn pair(&self) -> Option<Pair> {
        None
    }

    /// A length within which all its losses lie, wherever that range is, given everything before.
    fn bounded_range(&self) -> Option<Epsilon> {
        None
    }

    /// Whether no smaller pair dominates it: two of its own neighboring outputs are the pair of [`Family::pair`], or it stands for all
    /// mechanisms of a class one of which has it. Only then does the pair say what the mechanism costs at least.
    fn attains_its_pair(&self) -> bool {
        false
    }

    /// Whether its output cannot depend on the data outside its slack, because the parameter that carries the loss was
    /// declared to be zero.
    fn is_null(&self) -> bool {
        false
    }

    /// A simpler mechanism with the same laws, where the parameters allow one. It takes the place of this one in everything but the check of
    /// [`Family::neighbors`]: its word, its exact amounts.
    fn simpler(&self) -> Option<Single> {
        None
    }
}
