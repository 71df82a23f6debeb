//! Histograms, as SVG.

use crate::chart::{COLORS, FigureError};
use plotters::coord::Shift;
use plotters::prelude::*;

/// How many fall into each of equally wide bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// Where the bins begin and end.
    pub range: (f64, f64),
    /// One count for each bin.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// The chart as a self-contained SVG.
    ///
    /// # Errors
    /// [`FigureError`] when there is nothing to draw.
    pub fn svg(&self) -> Result<String, FigureError> {
        let (low, high) = self.range;
        let most = self.counts.iter().copied().max().unwrap_or(0);
        if most == 0 || low >= high {
            return Err(FigureError::Empty);
        }
        let mut text = String::new();
        let root = SVGBackend::with_string(&mut text, (900, 360)).into_drawing_area();
        let fault = |reason: String| FigureError::Draw { reason };
        self.draw(&root, most).map_err(|error| fault(error.to_string()))?;
        root.present().map_err(|error| fault(error.to_string()))?;
        drop(root);
        Ok(text)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of people")]
    fn draw<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        most: u64,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        root.fill(&WHITE)?;
        let (low, high) = self.range;
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .margin_right(36)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(low..high, 0.0..most as f64 * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(("sans-serif", 14))
            .light_line_style(BLACK.mix(0.06))
            .draw()?;
        let width = (high - low) / self.counts.len() as f64;
        chart.draw_series(self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bin, &count)| {
            let from = low + bin as f64 * width;
            Rectangle::new([(from, 0.0), (from + 0.92 * width, count as f64)], COLORS[0].filled())
        }))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_with_somebody_in_it_is_drawn() {
        let histogram = Histogram {
            title: "spent".into(),
            x_label: "of the budget".into(),
            y_label: "people".into(),
            range: (0.0, 1.0),
            counts: vec![3, 0, 5, 1],
        };
        let svg = histogram.svg().expect("a drawing");
        let bars = |svg: &str| svg.matches("fill=\"#0072B2\"").count();
        let more = Histogram { counts: vec![3, 2, 5, 1], ..histogram.clone() }.svg().expect("a drawing");
        assert!(bars(&svg) > 0 && bars(&more) == bars(&svg) + 1, "{svg}");
        let nobody = Histogram { counts: vec![0, 0], ..histogram };
        assert!(matches!(nobody.svg(), Err(FigureError::Empty)));
    }
}
