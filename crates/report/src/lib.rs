//! Figures and pages for people who would rather look than read.
//!
//! Everything is self-contained: no script, no style sheet, no font and no picture from anywhere else.

mod chart;
mod histogram;
mod intervals;
mod page;

pub use chart::{FigureError, LineChart, Series};
pub use histogram::Histogram;
pub use intervals::IntervalChart;
pub use page::{Block, Page, Table};
