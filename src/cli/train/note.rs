//! What is stored with a model: the promise, and everything that is needed to use the model without its run.

use super::config::Config;
use super::job::Job;
use anyhow::Context;
use paygo_training::checkpoint::{described, import};
use paygo_training::data::Shape;
use paygo_training::data::schema::Schema;
use paygo_training::model::Network;
use paygo_training::pca::Projection;
use serde_json::{Value, json};

/// The note of a model; claims are added to it.
pub(super) fn note(job: &Job, input: Shape, promise: &str) -> Value {
    let Shape { height, width, channels } = input;
    let mut note = json!({
        "promise": promise, "config": job.text,
        "input": [height, width, channels], "classes": job.split.train.classes(),
    });
    if let Some(schema) = job.config.data.schema_text(&job.beside) {
        note["schema"] = schema.into();
    }
    note
}

/// A model that was trained, ready to be used.
pub(crate) struct Trained {
    pub(crate) network: Network,
    pub(crate) parameters: Vec<f32>,
    pub(crate) projection: Option<Projection>,
    /// The columns of a table; none where inputs are numbers as they are.
    pub(crate) schema: Option<Schema>,
    /// The shape of an input, before it is seen along components.
    pub(crate) input: Shape,
    pub(crate) classes: usize,
    pub(crate) promise: String,
}

impl Trained {
    /// Reads a model file.
    pub(crate) fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let (note, components) = described(bytes).map_err(|error| anyhow::anyhow!(error))?;
        let note: Value = serde_json::from_str(&note).context("the metadata of the model is not JSON")?;
        let word = |name: &str| note.get(name).and_then(Value::as_str);
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let (config, promise) = (word("config"), word("promise"));
        let shape = |sizes: &Vec<Value>| match sizes.iter().map(number).collect::<Option<Vec<_>>>()?[..] {
            [height, width, channels] => Some(Shape { height, width, channels }),
            _ => None,
        };
        let (input, classes) = (note["input"].as_array().and_then(shape), number(&note["classes"]));
        let (Some(config), Some(promise), Some(input), Some(classes)) = (config, promise, input, classes) else {
            anyhow::bail!("the model does not say what its inputs are; it was trained by another version of paygo")
        };
        let projection = components.map(|components| Projection::restore(input, components)).transpose()?;
        let seen = projection.as_ref().map_or(input, |projection| Shape::vector(projection.count()));
        let network = Config::parse(config)?.model.network(seen, classes)?;
        let parameters = import(&network, bytes).map_err(|error| anyhow::anyhow!(error))?;
        let schema = word("schema").map(Schema::from_toml).transpose()?;
        Ok(Self { network, parameters, projection, schema, input, classes, promise: promise.to_owned() })
    }
}
