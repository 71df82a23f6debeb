//! `paygo predict`: what a trained model says about rows.

use super::train::Trained;
use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_training::data::rows::{Rows, read_numbers, read_table};
use paygo_training::model::Model as _;
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "DATA has the columns of the table that the model was trained on; the model file holds their \
    schema. The label column may be missing; if it is there, the accuracy goes to standard error. A model of images \
    takes rows of numbers, scaled as in training (pixels to 0..1), with or without the number of the class at the \
    end.\n\n\
    The promise to the people in the training data holds whatever the model is used for. Predictions about DATA are \
    not private.\n\n\
    Exit codes: 0 all rows are predicted, 2 something was wrong.\n\n\
    Examples:\n  \
    paygo predict trained people.csv > predicted.csv\n  \
    paygo predict trained/model.safetensors people.csv --json\n\n\
    See docs/training.md.")]
pub(crate) struct Arguments {
    /// The model: a model.safetensors file, or the folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The rows: a CSV file, plain, .gz or .xz
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Answer in JSON, one object per line, with the probability of every class
    #[arg(long)]
    json: bool,
}

/// Rows that are predicted at a time.
const AT_A_TIME: usize = 256;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let path =
        if arguments.model.is_dir() { arguments.model.join("model.safetensors") } else { arguments.model.clone() };
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let model = Trained::read(&bytes).with_context(|| path.display().to_string())?;
    let rows = match &model.schema {
        Some(schema) => read_table(&arguments.data, schema)?,
        None => read_numbers(&arguments.data, model.input, model.classes)?,
    };
    eprintln!("model: {}", model.promise);
    let correct = say(arguments, &model, &rows)?;
    let labelled = rows.labelled.iter().filter(|&&labelled| labelled).count();
    if labelled > 0 {
        #[expect(clippy::cast_precision_loss, reason = "numbers of rows")]
        let accuracy = correct as f64 / labelled as f64;
        eprintln!("accuracy {accuracy:.4} on {labelled} rows with labels");
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a line for each row, and counts those whose label is predicted.
fn say(arguments: &Arguments, model: &Trained, rows: &Rows) -> anyhow::Result<usize> {
    let inputs = model.projection.as_ref().map(|projection| projection.apply(&rows.examples));
    let inputs = inputs.as_ref().unwrap_or(&rows.examples);
    let bar = ProgressBar::new(inputs.len() as u64);
    bar.set_style(ProgressStyle::with_template("predicting [{bar:40}] {percent}% {elapsed}")?);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if !arguments.json {
        writeln!(out, "prediction,probability")?;
    }
    let mut correct = 0;
    for start in (0..inputs.len()).step_by(AT_A_TIME) {
        let range = start..inputs.len().min(start + AT_A_TIME);
        let probabilities = model.network.probabilities(&model.parameters, inputs.inputs(range.clone()));
        for (row, of_classes) in range.zip(probabilities.chunks_exact(model.network.classes())) {
            if !rows.complete[row] {
                // A row that training would have left out.
                writeln!(out, "{}", if arguments.json { json!({"prediction": null}).to_string() } else { ",".into() })?;
                continue;
            }
            let most = |best: usize, class: usize| if of_classes[class] > of_classes[best] { class } else { best };
            let class = (1..of_classes.len()).fold(0, most);
            correct += usize::from(rows.labelled[row] && rows.examples.label(row) as usize == class);
            writeln!(out, "{}", line(arguments.json, model, class, of_classes))?;
        }
        bar.inc(AT_A_TIME as u64);
    }
    out.flush()?;
    bar.finish_and_clear();
    Ok(correct)
}

fn line(json: bool, model: &Trained, class: usize, of_classes: &[f32]) -> String {
    if !json {
        return format!("{},{:.4}", quoted(&name(model, class)), of_classes[class]);
    }
    let named = |(class, &probability): (usize, &f32)| (name(model, class), Value::from(probability));
    let probabilities: serde_json::Map<_, _> = of_classes.iter().enumerate().map(named).collect();
    json!({"prediction": name(model, class), "probabilities": probabilities}).to_string()
}

/// A class as the table calls it; its number where there is no table.
fn name(model: &Trained, class: usize) -> String {
    let label = model.schema.as_ref().and_then(|schema| schema.label_values().get(class).cloned());
    label.unwrap_or_else(|| class.to_string())
}

/// A field of a CSV file.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
