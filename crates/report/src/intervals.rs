//! Charts of estimates with intervals, as SVG.

use crate::chart::{COLORS, FigureError};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Estimates with intervals, one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalChart {
    /// Above it.
    pub title: String,
    /// Below it.
    pub value_label: String,
    /// For each estimate its label, the lower end, the estimate, the upper end.
    pub points: Vec<(String, f64, f64, f64)>,
}

/// Labels are cut to this many characters.
const MAX_LABEL: usize = 24;
/// Only so many labels are written.
const MAX_LABELS: usize = 40;

impl IntervalChart {
    /// The chart as a self-contained SVG.
    ///
    /// # Errors
    /// [`FigureError`] when there is nothing finite to draw.
    pub fn svg(&self) -> Result<String, FigureError> {
        let ends = || self.points.iter().flat_map(|(_, low, _, high)| [*low, *high]).filter(|x| x.is_finite());
        let (low, high) = ends().fold((0.0f64, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        if high == f64::NEG_INFINITY {
            return Err(FigureError::Empty);
        }
        let margin = ((high - low) * 0.05).max(f64::MIN_POSITIVE);
        let high = if high > low { high + margin } else { low + 1.0 };
        let rows = u32::try_from(self.points.len()).unwrap_or(u32::MAX).min(60);
        let mut text = String::new();
        let root = SVGBackend::with_string(&mut text, (900, 110 + 22 * rows.max(3))).into_drawing_area();
        let fault = |reason: String| FigureError::Draw { reason };
        self.draw(&root, if low < 0.0 { low - margin } else { low }..high).map_err(|error| fault(error.to_string()))?;
        root.present().map_err(|error| fault(error.to_string()))?;
        drop(root);
        Ok(text)
    }

    fn draw<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        values: std::ops::Range<f64>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        root.fill(&WHITE)?;
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        let rows = self.points.len() as f64;
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .margin_right(36)
            .x_label_area_size(46)
            .y_label_area_size(190)
            .build_cartesian_2d(values, 0.0..rows)?;
        let label = |y: &f64| {
            // Marks stand in the middle of their rows; the first is on top.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a row number")]
            let row = (rows - y - 0.5).round() as usize;
            let middle = ((rows - y).fract() - 0.5).abs() < 1e-6;
            match self.points.get(row) {
                Some((label, ..)) if middle => label.chars().take(MAX_LABEL).collect(),
                Some(_) | None => String::new(),
            }
        };
        let written = self.points.len() <= MAX_LABELS;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_max_light_lines(1)
            .x_label_formatter(&|x| format!("{}", (x * 1e6).round() / 1e6))
            .x_desc(&self.value_label)
            .y_labels(if written { 2 * self.points.len() + 1 } else { 0 })
            .y_label_formatter(&label)
            .draw()?;
        for (row, (_, low, value, high)) in self.points.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "a row number")]
            let y = rows - row as f64 - 0.5;
            chart.draw_series([PathElement::new(vec![(*low, y), (*high, y)], COLORS[0].stroke_width(2))])?;
            chart.draw_series([Circle::new((*value, y), 4, COLORS[1].filled())])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_estimate_is_drawn() {
        let point = |label: &str, value: f64| (label.to_owned(), value - 1.0, value, value + 2.0);
        let chart = IntervalChart {
            title: "sales".into(),
            value_label: "sum".into(),
            points: vec![point("North", 3.0), point("South", -4.0)],
        };
        let svg = chart.svg().expect("a drawing");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("North") && svg.contains("South"), "{svg}");
        let nothing = IntervalChart { points: vec![point("x", f64::NAN)], ..chart };
        assert!(matches!(nothing.svg(), Err(FigureError::Empty)));
    }
}
