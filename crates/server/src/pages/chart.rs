//! A line over time, as SVG that takes its colors from the style sheet.

use super::time;
use maud::{Markup, html};

/// A point of a line: when, and how much, with the text to show for it.
pub(super) struct Dot {
    pub(super) at: u64,
    pub(super) value: f64,
    pub(super) shown: String,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 12.0;

/// Steps from point to point, with a line for the limit if there is one. Nothing where there is nothing finite to draw.
pub(super) fn steps(title: &str, dots: &[Dot], limit: Option<(f64, String)>) -> Markup {
    let dots: Vec<&Dot> = dots.iter().filter(|dot| dot.value.is_finite()).collect();
    let (Some(first), Some(last)) = (dots.first(), dots.last()) else {
        return html! { figure.chart { figcaption { (title) } p.none { "Nothing yet." } } };
    };
    let highest = dots.iter().map(|dot| dot.value).chain(limit.as_ref().map(|(value, _)| *value)).fold(0.0, f64::max);
    let (top, ticks) = scale(highest);
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let elapsed = |at: u64| at.saturating_sub(first.at) as f64;
    let whole = elapsed(last.at).max(1.0);
    let x = |at: u64| LEFT + (WIDTH - LEFT - RIGHT) * elapsed(at) / whole;
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
    let mut path = format!("M{:.1},{:.1}", x(first.at), y(0.0));
    for dot in &dots {
        path += &format!("H{:.1}V{:.1}", x(dot.at), y(dot.value));
    }
    path += &format!("H{:.1}", WIDTH - RIGHT);
    html! {
        figure.chart {
            figcaption { (title) ": " strong { (last.shown) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{title}, from 0 to {}", last.shown)) {
                @for tick in ticks {
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(tick)) y2=(y(tick)) {}
                    text.tick x=(LEFT - 6.0) y=(y(tick) + 4.0) text-anchor="end" { (trimmed(tick)) }
                }
                path.line d=(path) {}
                @for dot in &dots {
                    circle.dot cx=(format!("{:.1}", x(dot.at))) cy=(format!("{:.1}", y(dot.value))) r="3" {
                        title { (dot.shown) }
                    }
                }
                @if let Some((value, shown)) = limit {
                    line.limit x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(value)) y2=(y(value)) {}
                    text.limit-name x=(LEFT + 6.0) y=(y(value) - 5.0) { (shown) }
                }
            }
            p.span { (time(first.at)) " to " (time(last.at)) }
        }
    }
}

/// A round number at or above the highest value, and a few round numbers up to it.
fn scale(highest: f64) -> (f64, Vec<f64>) {
    let highest = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let power = 10f64.powi(exponent(highest));
    let step = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5].into_iter().map(|part| part * power);
    let step = step.into_iter().find(|step| highest / step <= 5.0).unwrap_or(5.0 * power);
    let ticks: Vec<f64> = (0..=5_u8).map(|i| f64::from(i) * step).take_while(|tick| *tick <= highest).collect();
    (highest, ticks)
}

fn exponent(x: f64) -> i32 {
    format!("{x:e}").split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

fn trimmed(tick: f64) -> String {
    let text = format!("{tick:.3e}");
    text.parse::<f64>().map_or(text, |rounded| rounded.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_what_they_show() {
        for highest in [0.0, 1e-9, 0.003, 0.5, 1.0, 9.9, 10.0, 12345.0] {
            let (top, ticks) = scale(highest);
            assert!(top > highest && (2..=6).contains(&ticks.len()), "{highest}: {top} {ticks:?}");
            assert!(ticks.iter().all(|tick| *tick <= top) && ticks[0] == 0.0);
        }
    }

    #[test]
    fn a_line_with_its_limit() {
        let dot = |at, value: f64| Dot { at, value, shown: format!("ε {value}") };
        let drawn =
            steps("Spent", &[dot(1000, 0.5), dot(3000, 0.75)], Some((1.0, "budget 1".to_owned()))).into_string();
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert!(drawn.contains("budget 1") && drawn.contains("Spent, from 0 to ε 0.75"), "{drawn}");
        assert!(drawn.contains("1970-01-01 00:00:03 UTC"));
        assert!(steps("Spent", &[dot(0, f64::INFINITY)], None).into_string().contains("Nothing yet"));
    }
}
