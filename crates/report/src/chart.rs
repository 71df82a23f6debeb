//! Charts of lines, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// A figure that could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// Nothing finite to draw.
    #[error("there is nothing finite to draw")]
    Empty,
    /// The drawing library's complaint.
    #[error("cannot draw: {reason}")]
    Draw {
        /// What it said.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {reason}")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points; points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// Whether to draw it dashed: for numbers that are not bounds.
    pub dashed: bool,
}

/// A chart of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// Its lines.
    pub series: Vec<Series>,
    /// What lies above is left out.
    pub y_limit: f64,
}

/// Colours that stay apart for most eyes (Okabe and Ito), in print and on a screen.
pub(crate) const COLORS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
    RGBColor(120, 60, 20),
    RGBColor(110, 120, 0),
];

impl LineChart {
    /// Writes the chart as a self-contained SVG.
    ///
    /// # Errors
    /// [`FigureError`] when there is nothing finite to draw or the file cannot be written.
    pub fn write_svg(&self, path: &Path) -> Result<(), FigureError> {
        let fault =
            |error: std::io::Error| FigureError::Write { path: path.display().to_string(), reason: error.to_string() };
        std::fs::write(path, self.svg()?).map_err(fault)
    }

    /// The chart as a self-contained SVG.
    ///
    /// # Errors
    /// [`FigureError`] when there is nothing finite to draw.
    pub fn svg(&self) -> Result<String, FigureError> {
        let finite = || self.series.iter().flat_map(|series| self.visible(series));
        if finite().next().is_none() {
            return Err(FigureError::Empty);
        }
        let span = |pick: fn((f64, f64)) -> f64| {
            let (low, high) =
                finite().map(pick).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            if low < high { (low, high) } else { (low - 0.5, high + 0.5) }
        };
        let (x, y) = (span(|p| p.0), span(|p| p.1));
        let mut text = String::new();
        let root = SVGBackend::with_string(&mut text, (900, 560)).into_drawing_area();
        let fault = |reason: String| FigureError::Draw { reason };
        self.draw(&root, x, (y.0.min(0.0), y.1 * 1.05)).map_err(|error| fault(error.to_string()))?;
        root.present().map_err(|error| fault(error.to_string()))?;
        drop(root);
        Ok(text)
    }

    /// The corner that the fewest points fall into: there the legend stands.
    fn free_corner(&self, x: (f64, f64), y: (f64, f64)) -> SeriesLabelPosition {
        let corners = [
            (SeriesLabelPosition::LowerRight, (0.6, 1.0), (0.0, 0.35)),
            (SeriesLabelPosition::UpperLeft, (0.0, 0.4), (0.65, 1.0)),
            (SeriesLabelPosition::UpperRight, (0.6, 1.0), (0.65, 1.0)),
            (SeriesLabelPosition::LowerLeft, (0.0, 0.4), (0.0, 0.35)),
        ];
        let points = || self.series.iter().flat_map(|series| self.visible(series));
        let inside = |across: (f64, f64), up: (f64, f64)| {
            let share = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
            let here = |p: &(f64, f64)| {
                (across.0..=across.1).contains(&share(p.0, x)) && (up.0..=up.1).contains(&share(p.1, y))
            };
            points().filter(here).count()
        };
        corners
            .into_iter()
            .min_by_key(|(_, across, up)| inside(*across, *up))
            .map_or(SeriesLabelPosition::UpperRight, |(corner, _, _)| corner)
    }

    fn visible<'a>(&self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let limit = self.y_limit;
        series.points.iter().copied().filter(move |(x, y)| x.is_finite() && y.is_finite() && *y <= limit)
    }

    fn draw<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        x: (f64, f64),
        y: (f64, f64),
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .margin_right(36)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .x_label_formatter(&|x| {
                if x.abs() >= 10.0 { format!("{x:.0}") } else { format!("{}", (x * 1e6).round() / 1e6) }
            })
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .label_style(("sans-serif", 14))
            .light_line_style(BLACK.mix(0.06))
            .draw()?;
        for (series, color) in self.series.iter().zip(COLORS.iter().cycle()) {
            let points: Vec<(f64, f64)> = self.visible(series).collect();
            if points.is_empty() {
                continue;
            }
            let style = color.stroke_width(2);
            let legend = move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 22, y)], style);
            if series.dashed {
                chart.draw_series(DashedLineSeries::new(points, 6, 5, style))?.label(&series.name).legend(legend);
            } else {
                chart.draw_series(LineSeries::new(points, style))?.label(&series.name).legend(legend);
            }
        }
        chart
            .configure_series_labels()
            .position(self.free_corner(x, y))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 14))
            .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> LineChart {
        let series = vec![Series { name: "one & <two>".into(), points, dashed: false }];
        LineChart { title: "t".into(), x_label: "x".into(), y_label: "y".into(), series, y_limit: 10.0 }
    }

    #[test]
    fn draws_what_is_finite_and_says_when_nothing_is() {
        let folder = std::env::temp_dir().join(format!("paygo-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("chart.svg");
        chart(vec![(0.0, 1.0), (1.0, f64::INFINITY), (1.5, 1e9), (2.0, 3.0)]).write_svg(&path).expect("drawn");
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(text.starts_with("<svg") && text.contains("one &amp; &lt;two&gt;") && !text.contains("inf"), "{text}");
        assert!(matches!(chart(vec![(0.0, f64::NAN)]).write_svg(&path), Err(FigureError::Empty)));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
