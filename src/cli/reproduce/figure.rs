//! A paper's drawings.

use paygo_report::{LineChart, Series};

/// One drawing.
pub(super) struct Figure {
    /// What its file is called, after the paper.
    pub(super) name: &'static str,
    pub(super) caption: &'static str,
    pub(super) chart: fn() -> anyhow::Result<LineChart>,
}

/// A chart that shows all of its lines.
pub(super) fn chart(title: &str, x: &str, y: &str, series: Vec<Series>) -> LineChart {
    LineChart { title: title.into(), x_label: x.into(), y_label: y.into(), series, y_limit: f64::INFINITY }
}

/// A line of a chart.
pub(super) fn line(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, dashed: false }
}

/// A dashed line: a number that is no bound.
pub(super) fn unsound(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, dashed: true }
}

/// The points of a formula.
pub(super) fn over<X: Copy + Into<f64>>(
    xs: impl IntoIterator<Item = X>,
    y: impl Fn(X) -> anyhow::Result<f64>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    xs.into_iter().map(|x| Ok((x.into(), y(x)?))).collect()
}
