//! A table of people who do not exist.

use crate::cli::made_up::Generator;

/// One person.
pub(super) struct Person {
    pub(super) region: usize,
    /// Yearly income, in whole units.
    pub(super) income: i64,
}

pub(super) const REGIONS: [&str; 8] = ["North", "East", "South", "West", "Coast", "Valley", "Hills", "Capital"];

/// The same table every time. Incomes are skewed, as incomes are, and differ by region and age.
pub(super) fn table(people: usize) -> Vec<Person> {
    let mut random = Generator(0x5eed);
    let person = |_| {
        // The capital has twice the people of any other region.
        let region = random.below(9).min(7);
        let age = 18 + random.below(30) + random.below(30);
        let luck = 1 + random.below(20) * random.below(20) / 8;
        let base = 14_000 + 1_500 * region + 350 * age.min(55);
        Person { region, income: i64::try_from(base + 900 * luck).unwrap_or(i64::MAX) }
    };
    (0..people).map(person).collect()
}
