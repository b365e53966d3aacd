//! The ratios as a picture: a bar for each comparison, and a line where ours and the best peer are equal.

use std::path::Path;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, IntoDrawingArea, IntoFont, IntoSegmentedCoord, PathElement,
    RGBColor, Rectangle, SVGBackend, SegmentValue, Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Result;
use crate::report::Comparison;

const WIDTH: u32 = 900;
const BAR: u32 = 20;
const CAPTION_AND_AXIS: u32 = 110;
const LABELS: u32 = 230;

/// A longer bar ends here, and its number says how long it is.
const LONGEST: f64 = 2.0;

/// Where the numbers end: in a column, clear of all bars and of the line.
const NUMBERS: f64 = 2.2;

const BETTER: RGBColor = RGBColor(0x2a, 0x7f, 0x9e);
const WORSE: RGBColor = RGBColor(0xc8, 0x5a, 0x2e);

/// Writes the picture. Its background is its own, so that it can be read on a dark page as well.
pub(crate) fn draw(path: &Path, comparisons: &[Comparison]) -> Result<()> {
    let bars: Vec<(String, f64)> = comparisons
        .iter()
        // Rows of several figures or settings would be most of the bars.
        .filter(|comparison| comparison.row.figures().len() == 1 && comparison.setting.is_none())
        .filter_map(|comparison| Some((label(comparison), comparison.ratio_to_best?)))
        .collect();
    let height = CAPTION_AND_AXIS + BAR * bars.len().max(1) as u32;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;

    let last = bars.len().max(1) - 1;
    let mut chart = ChartBuilder::on(&area)
        .caption("elastipool : best peer (shorter is better)", ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(35)
        .y_label_area_size(LABELS)
        // From top to bottom, in the order of the rows.
        .build_cartesian_2d(0.0..NUMBERS, (0..last).into_segmented())?;
    let name = |value: &SegmentValue<usize>| match value {
        SegmentValue::CenterOf(index) => {
            bars.iter().rev().nth(*index).map_or_else(String::new, |bar| bar.0.clone())
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE)
        .x_labels(9)
        .x_label_formatter(&|ratio| format!("{ratio:.2}"))
        .y_labels(bars.len())
        .y_label_formatter(&name)
        .label_style(("sans-serif", 13))
        .draw()?;

    chart.draw_series(bars.iter().rev().enumerate().map(|(index, (_, ratio))| {
        let corners = [
            (0.0, SegmentValue::Exact(index)),
            (ratio.min(LONGEST), SegmentValue::Exact(index + 1)),
        ];
        let mut bar = Rectangle::new(corners, if *ratio <= 1.0 { BETTER } else { WORSE }.filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    }))?;
    let line = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(last + 1))];
    chart.draw_series([PathElement::new(line, BLACK.stroke_width(2))])?;
    chart.draw_series(bars.iter().rev().enumerate().map(|(index, (_, ratio))| {
        let pos = Pos::new(HPos::Right, VPos::Center);
        let style = ("sans-serif", 13).into_font().color(&BLACK).pos(pos);
        Text::new(format!("{ratio:.2}"), (NUMBERS, SegmentValue::CenterOf(index)), style)
    }))?;
    area.present()?;
    Ok(())
}

fn label(comparison: &Comparison) -> String {
    let Comparison { row, workers, engine, .. } = comparison;
    if row.is_elastic() { format!("{row}, {engine}") } else { format!("{row}, {workers} workers") }
}
