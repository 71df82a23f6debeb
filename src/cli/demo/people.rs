//! A table of people who do not exist, and of what they bought.

use crate::cli::made_up::Generator;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde::Serialize;
use std::sync::Arc;

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

/// Days in the table of purchases.
pub(super) const DAYS: i64 = 60;

/// Something that was bought.
#[derive(Serialize)]
pub(super) struct Purchase {
    customer: i64,
    region: &'static str,
    income: i64,
    day: i64,
    amount: i64,
}

/// What they bought: one to eight purchases each over sixty days, more at the end of a week.
pub(super) fn purchases(people: &[Person]) -> Vec<Purchase> {
    let mut random = Generator(0xba5e);
    let mut purchases = Vec::new();
    for (customer, person) in (1i64..).zip(people) {
        for _ in 0..=random.below(3) * random.below(3) + random.below(4) {
            // Of two days, the one at the end of a week.
            let days = [0; 2].map(|_| 1 + i64::try_from(random.below(60)).unwrap_or(0));
            let day = days.into_iter().find(|day| day % 7 >= 5).unwrap_or(days[0]);
            let (region, income) = (REGIONS[person.region], person.income);
            let amount = 2 + income / 4000 + i64::try_from(random.below(20) * random.below(20) / 6).unwrap_or(0);
            purchases.push(Purchase { customer, region, income, day, amount });
        }
    }
    purchases
}

/// The same as a table.
pub(super) fn batch(purchases: &[Purchase]) -> anyhow::Result<RecordBatch> {
    let numbers = |of: fn(&Purchase) -> i64| Arc::new(purchases.iter().map(of).collect::<Int64Array>());
    let regions = StringArray::from_iter_values(purchases.iter().map(|purchase| purchase.region));
    let columns: [(&str, ArrayRef); 5] = [
        ("customer", numbers(|purchase| purchase.customer)),
        ("region", Arc::new(regions)),
        ("income", numbers(|purchase| purchase.income)),
        ("day", numbers(|purchase| purchase.day)),
        ("amount", numbers(|purchase| purchase.amount)),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
