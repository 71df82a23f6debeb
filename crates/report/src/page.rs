//! Self-contained HTML pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In the title bar and on top.
    pub title: String,
    /// In order.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A drawing, as SVG that this crate made.
    Figure {
        /// The SVG.
        svg: String,
        /// Below it.
        caption: String,
    },
    /// Big numbers side by side: a label, the number, a remark.
    Numbers(Vec<(String, String, String)>),
}

/// Rows under a header.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The header.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.7rem}h2{margin-top:2.2rem;border-bottom:1px solid #ddd}figure{margin:1rem 0}figure svg{max-width:100%;height:auto}\
figcaption{color:#555;font-size:.9rem}table{border-collapse:collapse;font-size:.92rem;display:block;overflow-x:auto}\
td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:left}th{background:#f4f4f4}\
.numbers{display:flex;flex-wrap:wrap;gap:1rem}.numbers div{border:1px solid #ddd;border-radius:.5rem;padding:.6rem 1rem;min-width:9rem}\
.numbers b{display:block;font-size:1.6rem}.numbers small{color:#555}";

impl Page {
    /// The page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (self.title) }
                    @for block in &self.blocks { (block.markup()) }
                }
            }
        };
        page.into_string()
    }
}

impl Block {
    fn markup(&self) -> Markup {
        match self {
            Self::Heading(text) => html! { h2 { (text) } },
            Self::Text(text) => html! { p { (text) } },
            Self::Table(table) => html! {
                table {
                    tr { @for cell in &table.header { th { (cell) } } }
                    @for row in &table.rows { tr { @for cell in row { td { (cell) } } } }
                }
            },
            Self::Figure { svg, caption } => html! {
                figure { (PreEscaped(svg)) figcaption { (caption) } }
            },
            Self::Numbers(numbers) => html! {
                div class="numbers" {
                    @for (label, number, remark) in numbers {
                        div { (label) b { (number) } small { (remark) } }
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_nothing_is_fetched() {
        let table = Table { header: vec!["<b>".into()], rows: vec![vec!["a & b".into()]] };
        let page = Page {
            title: "1 < 2".into(),
            blocks: vec![
                Block::Heading("<script>".into()),
                Block::Text("x".into()),
                Block::Table(table),
                Block::Figure { svg: "<svg></svg>".into(), caption: "c".into() },
                Block::Numbers(vec![("l".into(), "3".into(), "r".into())]),
            ],
        };
        let html = page.html();
        assert!(
            html.contains("<title>1 &lt; 2</title>") && html.contains("&lt;script&gt;") && html.contains("a &amp; b")
        );
        assert!(
            html.contains("<svg></svg>")
                && !html.contains("<script")
                && !html.contains("http")
                && !html.contains("src=")
        );
    }
}
