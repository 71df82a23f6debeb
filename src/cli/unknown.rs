//! A plan with one unknown: `"?"` in the place of a number, and what it must be.

use anyhow::Context;
use paygo_accounting::calibrate::{CalibrationError, Sense};
use paygo_accounting::cost::Cost;
use paygo_accounting::params::Neighbors;
use paygo_accounting::wire::Plan;
use serde_json::Value;
use std::path::Path;

/// What stands for the unknown.
const UNKNOWN: &str = "?";

/// Fields that can be sought, which way the price goes with them, and where: least, start, most.
const SOUGHT: [(&str, Sense, (f64, f64, f64)); 9] = [
    ("noise_multiplier", Sense::Falls, (1e-3, 1.0, 1e7)),
    ("noise_multipliers", Sense::Falls, (1e-3, 1.0, 1e7)),
    ("noise_std", Sense::Falls, (1e-9, 1.0, 1e12)),
    ("scale", Sense::Falls, (1e-9, 1.0, 1e12)),
    ("sampling_probability", Sense::Rises, (1e-9, 1e-2, 1.0)),
    ("batch_fraction", Sense::Rises, (1e-9, 1e-2, 1.0)),
    ("epsilon", Sense::Rises, (1e-12, 0.1, 1e3)),
    ("rho", Sense::Rises, (1e-12, 0.01, 1e3)),
    ("mu", Sense::Rises, (1e-12, 0.1, 1e3)),
];

/// What is sought in a plan.
pub(crate) enum Sought {
    /// A whole number of releases.
    Count,
    /// A number.
    Real(&'static str, Sense, (f64, f64, f64)),
}

/// A plan with one unknown.
pub(crate) struct UnknownPlan {
    text: Value,
    pub(crate) sought: Sought,
    pub(crate) neighbors: Neighbors,
}

impl UnknownPlan {
    /// Reads a plan and finds what is unknown in it.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let value = (|| -> anyhow::Result<Value> {
            // Read as a plan first: what is there twice, or is no field, is found there.
            let plan = super::account::parse_plan(&super::account::read_text(path)?)?;
            let value = serde_json::to_value(plan)?;
            anyhow::ensure!(!has_null(&value), "a number is infinite or NaN; expected a finite one");
            Ok(value)
        })();
        let value = value.with_context(|| super::account::name(path))?;
        let mut fields = Vec::new();
        find(&value["releases"], "", &mut fields);
        fields.sort_unstable();
        fields.dedup();
        let [field] = fields.as_slice() else {
            anyhow::bail!(
                "a plan to be calibrated has one unknown, \"?\" in the place of a number; given {}\nhint: noise_multiplier = \"?\"",
                if fields.is_empty() { "none".to_owned() } else { fields.join(" and ") }
            );
        };
        let sought = match SOUGHT.iter().find(|(name, ..)| name == field) {
            Some(&(name, sense, range)) => Sought::Real(name, sense, range),
            None if field == "count" => Sought::Count,
            None => {
                let known = SOUGHT.map(|(name, ..)| name).join(", ");
                anyhow::bail!("{field} cannot be sought; expected \"?\" in the place of one of count, {known}");
            }
        };
        let neighbors = match sought {
            Sought::Count => plan(&value, "1")?,
            Sought::Real(_, _, (_, start, _)) => plan(&value, &start.to_string())?,
        };
        let neighbors = neighbors.neighbors.into();
        Ok(Self { text: value, sought, neighbors })
    }

    /// The cost of the plan with this number in the place of the unknown.
    pub(crate) fn cost_at(&self, number: &str) -> Result<Cost, CalibrationError> {
        let wrong = |error: anyhow::Error| CalibrationError::Plan(format!("{error:#}"));
        let plan = plan(&self.text, number).map_err(wrong)?;
        plan.cost().map_err(|error| CalibrationError::Plan(error.to_string()))
    }
}

/// The names of the fields whose value is unknown.
fn find(value: &Value, field: &str, fields: &mut Vec<String>) {
    match value {
        Value::String(text) if text == UNKNOWN => fields.push(field.to_owned()),
        Value::Array(all) => all.iter().for_each(|each| find(each, field, fields)),
        Value::Object(object) => object.iter().for_each(|(name, each)| find(each, name, fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a number was none: JSON has no word for it, and what was left out is not written.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(has_null),
        Value::Object(object) => object.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The plan with this number in the place of the unknown.
fn plan(value: &Value, number: &str) -> anyhow::Result<Plan> {
    fn replaced(value: &Value, number: &str) -> Value {
        match value {
            Value::String(text) if text == UNKNOWN => number.into(),
            Value::Array(all) => all.iter().map(|each| replaced(each, number)).collect(),
            Value::Object(object) => object.iter().map(|(name, each)| (name.clone(), replaced(each, number))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    serde_json::from_value(replaced(value, number)).context("plan")
}
