//! The user rows as a picture: a bar for each, on a logarithmic axis, left of the middle where ours
//! is faster.

use std::collections::BTreeSet;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, Color, DrawingArea, IntoDrawingArea, IntoFont, PathElement, RGBColor, Rectangle,
    SVGBackend, Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform};

use crate::Result;
use crate::report::Comparison;
use crate::rows::{Figure, Row, Story};

const CAPTION: &str = "elastipool's time, threads or memory, divided by the best peer's";

const WIDTH: i32 = 860;
const LINE: i32 = 19;
const HEAD: i32 = 62;
const FOOT: i32 = 12;

/// Where the names of the rows end, and between which columns the bars are.
const NAMES: i32 = 236;
const BARS: (i32, i32) = (250, 626);

/// Where the numbers end, and where the names of the peers begin.
const NUMBERS: i32 = 676;
const PEERS: i32 = 690;

/// A longer bar ends here, and its number says how long it is.
const LONGEST: f64 = 10.0;

const BETTER: RGBColor = RGBColor(0x2a, 0x7f, 0x9e);
const WORSE: RGBColor = RGBColor(0xc8, 0x5a, 0x2e);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

struct Bar {
    story: Story,
    name: &'static str,
    ratio: f64,
    peers: String,
}

/// Writes the picture. Its background is its own, so that it can be read on a dark page as well.
pub(crate) fn draw(path: &Path, comparisons: &[Comparison]) -> Result<()> {
    let bars = bars(comparisons);
    let stories = bars.iter().map(|bar| bar.story).collect::<BTreeSet<_>>().len();
    let height = HEAD + LINE * (bars.len() + stories) as i32 + FOOT;
    let area = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    write(&area, CAPTION, (WIDTH / 2, 16), HPos::Center, 18)?;
    for (ratio, label) in [
        (0.1, "a tenth"),
        (1.0 / 3.0, "a third"),
        (1.0, "equal"),
        (3.0, "3 times"),
        (10.0, "10 times"),
    ] {
        write(&area, label, (column(ratio), 44), HPos::Center, 12)?;
        let (top, bottom) = ((column(ratio), HEAD - 6), (column(ratio), height - FOOT));
        area.draw(&PathElement::new([top, bottom], GRID.stroke_width(1)))?;
    }
    write(&area, "best peer", (PEERS, 44), HPos::Left, 12)?;

    let mut y = HEAD;
    let mut story = None;
    for bar in &bars {
        if story.replace(bar.story) != Some(bar.story) {
            let font = ("sans-serif", 13).into_font().style(FontStyle::Bold).color(&BLACK);
            let pos = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(bar.story.title(), (14, y + LINE / 2), font.pos(pos)))?;
            y += LINE;
        }
        let ends = [(column(1.0), y + 3), (column(bar.ratio), y + LINE - 3)];
        let color = if bar.ratio <= 1.0 { BETTER } else { WORSE };
        area.draw(&Rectangle::new(ends, color.filled()))?;
        let middle = y + LINE / 2;
        write(&area, bar.name, (NAMES, middle), HPos::Right, 13)?;
        write(&area, &format!("{:.2}", bar.ratio), (NUMBERS, middle), HPos::Right, 13)?;
        write(&area, &bar.peers, (PEERS, middle), HPos::Left, 12)?;
        y += LINE;
    }
    let line = [(column(1.0), HEAD - 6), (column(1.0), height - FOOT)];
    area.draw(&PathElement::new(line, BLACK.stroke_width(2)))?;
    area.present()?;
    Ok(())
}

/// A bar for each user row: the geometric mean over its numbers of workers, its settings, and its
/// medians and 99th percentiles, each compared with the peer that is the best there. In the rows
/// about sizes that is our own pool of the best size.
fn bars(comparisons: &[Comparison]) -> Vec<Bar> {
    let mut rows: Vec<Row> = Vec::new();
    for comparison in comparisons {
        if !rows.contains(&comparison.row) {
            rows.push(comparison.row);
        }
    }
    let mut bars: Vec<Bar> = rows.into_iter().filter_map(|row| bar(row, comparisons)).collect();
    bars.sort_by_key(|bar| bar.story);
    bars
}

fn bar(row: Row, comparisons: &[Comparison]) -> Option<Bar> {
    let (story, name) = row.story()?;
    // The default pool in rows about it, and otherwise one with sizes.
    let ours = *row.engines().first()?;
    let counts = |one: &&Comparison| {
        one.row == row
            && one.engine == ours
            && row.is_user_setting(one.setting)
            && matches!(one.figure, Figure::Value | Figure::P50 | Figure::P99)
    };
    let (mut logarithms, mut peers) = (Vec::new(), BTreeSet::new());
    for one in comparisons.iter().filter(counts) {
        if let Some(ratio) = one.ratio_to_best.filter(|ratio| *ratio > 0.0) {
            logarithms.push(ratio.ln());
            peers.extend(one.best.map(|best| match one.best_size {
                Some(_) => "a pool of the best size".to_owned(),
                None => best.to_string(),
            }));
        }
    }
    let count = (!logarithms.is_empty()).then_some(logarithms.len() as f64)?;
    let ratio = (logarithms.iter().sum::<f64>() / count).exp();
    let peers = peers.into_iter().collect::<Vec<_>>();
    let peers = match &peers[..] {
        [first, second, _, ..] => format!("{first}, {second}, .."),
        few => few.join(", "),
    };
    Some(Bar { story, name, ratio, peers })
}

fn column(ratio: f64) -> i32 {
    let (first, last) = (f64::from(BARS.0), f64::from(BARS.1));
    let part = ratio.clamp(1.0 / LONGEST, LONGEST).log(LONGEST);
    (f64::midpoint(first, last) + part * (last - first) / 2.0).round() as i32
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), side: HPos, size: i32) -> Result<()> {
    let font = ("sans-serif", size).into_font().transform(FontTransform::None).color(&BLACK);
    area.draw(&Text::new(text.to_owned(), at, font.pos(Pos::new(side, VPos::Center))))?;
    Ok(())
}
