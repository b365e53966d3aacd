//! The chart: a panel for each pool, one below the other on the same scales.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::engines::Counts;
use crate::load::Recording;

/// What differs from load to load.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What running and waiting workers are called.
    pub(crate) running: &'static str,
    pub(crate) waiting: &'static str,
    /// Whether the counts differ so much that only their logarithms fit on one scale.
    pub(crate) is_logarithmic: bool,
    /// The height of a panel, in pixels.
    pub(crate) height: u32,
}

impl Chart {
    /// Where a count is on the axis.
    fn position(&self, count: usize) -> f64 {
        if self.is_logarithmic { (1.0 + count as f64).log2() } else { count as f64 }
    }

    /// The counts with a label.
    fn labels(&self) -> impl Iterator<Item = usize> {
        let counts =
            if self.is_logarithmic { [0, 2, 8, 32, 128, 512] } else { [0, 5, 10, 15, 20, 25] };
        counts.into_iter()
    }
}

/// What one pool did.
pub(crate) struct Panel {
    pub(crate) recording: Recording,
    /// What sums it up.
    pub(crate) sum: String,
    /// Numbers of workers with a line, and their names.
    pub(crate) lines: Vec<(&'static str, usize)>,
}

const RUNNING: RGBColor = RGBColor(66, 133, 200);
const WAITING: RGBColor = RGBColor(150, 100, 180);
const IDLE: RGBColor = RGBColor(205, 214, 222);
const QUEUED: RGBColor = RGBColor(217, 95, 2);
const TEXT: RGBColor = RGBColor(60, 60, 60);

/// In pixels: the width, the ends of the panels, and what is above them.
const WIDTH: u32 = 960;
const LEFT: i32 = 52;
const RIGHT: i32 = 24;
const HEADER: u32 = 76;

/// Which of the counts.
type Count = fn(Counts) -> usize;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&TEXT)
}

pub(crate) fn draw(file: &Path, chart: &Chart, all: &[Panel]) -> Result<(), Box<dyn Error>> {
    let height = HEADER + chart.height * all.len() as u32;
    let root = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (header, panels) = root.split_vertically(HEADER);
    draw_header(&header, chart)?;
    let recordings = || all.iter().map(|panel| &panel.recording);
    let highest = recordings().map(|recording| {
        recording.peak(Counts::workers).max(recording.peak(|counts| counts.queued))
    });
    // Space for the text above the curves.
    let top = chart.position(highest.max().unwrap_or_default().max(1)) * 1.2;
    // Space for the names of the lines.
    let end = recordings().map(|recording| recording.end).fold(0.0, f64::max) * 1.065;
    for (panel, area) in all.iter().zip(panels.split_evenly((all.len(), 1))) {
        draw_panel(&area, chart, panel, end, top)?;
    }
    root.present()?;
    Ok(())
}

/// Draws what the colours mean.
fn draw_header(area: &Area<'_>, chart: &Chart) -> Result<(), Box<dyn Error>> {
    area.draw(&Text::new(chart.title.as_str(), (LEFT, 14), font(17)))?;
    area.draw(&Text::new("workers:", (LEFT, 46), font(15)))?;
    let mut x = LEFT + 72;
    let legend = [(chart.running, RUNNING), (chart.waiting, WAITING), ("idle", IDLE)];
    for (name, color) in legend {
        area.draw(&Rectangle::new([(x, 45), (x + 16, 61)], color.filled()))?;
        area.draw(&Text::new(name, (x + 23, 46), font(15)))?;
        x += 50 + 7 * name.len() as i32;
    }
    area.draw(&PathElement::new(vec![(x + 10, 53), (x + 38, 53)], QUEUED.stroke_width(2)))?;
    area.draw(&Text::new("tasks in the queue", (x + 46, 46), font(15)))?;
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    chart: &Chart,
    panel: &Panel,
    end: f64,
    top: f64,
) -> Result<(), Box<dyn Error>> {
    let Panel { recording, sum, lines } = panel;
    area.draw(&Text::new(recording.name.as_str(), (LEFT, 6), font(17)))?;
    let right = ("sans-serif", 17, FontStyle::Bold).into_font().color(&TEXT);
    let right = right.pos(Pos::new(HPos::Right, VPos::Top));
    area.draw(&Text::new(sum.as_str(), (WIDTH as i32 - RIGHT, 6), right))?;
    let mut plot = ChartBuilder::on(area)
        .margin(6)
        .margin_top(30)
        .margin_right(RIGHT)
        .x_label_area_size(30)
        .y_label_area_size(LEFT - 6)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    plot.configure_mesh()
        .disable_mesh()
        .axis_style(BLACK.mix(0.4))
        .label_style(font(13))
        .x_labels(12)
        .x_label_formatter(&|time| format!("{:.0} ms", time * 1e3))
        .y_labels(0)
        .draw()?;
    let before = font(13).pos(Pos::new(HPos::Right, VPos::Center));
    for (count, height) in chart.labels().map(|count| (count, chart.position(count))) {
        if height < top {
            plot.draw_series(LineSeries::new([(0.0, height), (end, height)], BLACK.mix(0.08)))?;
            let label = Text::new(count.to_string(), (-8, 0), before.clone());
            plot.draw_series([EmptyElement::at((0.0, height)) + label])?;
        }
    }
    // The areas are stacked: the largest is drawn first.
    let stacked: [(RGBColor, Count); 3] = [
        (IDLE, Counts::workers),
        (WAITING, |counts| counts.running + counts.waiting),
        (RUNNING, |counts| counts.running),
    ];
    for (color, count) in stacked {
        let steps = steps(chart, recording, count);
        plot.draw_series(AreaSeries::new(steps, 0.0, color.filled()))?;
    }
    let queued = steps(chart, recording, |counts| counts.queued);
    plot.draw_series(LineSeries::new(queued, QUEUED.stroke_width(2)))?;
    for (name, count) in lines {
        let height = chart.position(*count);
        let line = [(0.0, height), (end, height)];
        plot.draw_series(DashedLineSeries::new(line, 4, 4, BLACK.mix(0.5).into()))?;
        let above = font(12).pos(Pos::new(HPos::Right, VPos::Bottom));
        plot.draw_series([Text::new(*name, (end, height), above)])?;
    }
    let centered = font(13).pos(Pos::new(HPos::Center, VPos::Top));
    for ((start, name), phase_end) in recording.phases.iter().zip(recording.phase_ends()) {
        let border = [(*start, 0.0), (*start, top)];
        plot.draw_series(LineSeries::new(border, BLACK.mix(0.15)))?;
        // The colours tell the phases that are too narrow for their names.
        let width = (phase_end - start) / end * f64::from(WIDTH as i32 - LEFT - RIGHT);
        if width < 6.5 * name.len() as f64 {
            continue;
        }
        let middle = ((start + phase_end) / 2.0, top * 0.99);
        plot.draw_series([Text::new(*name, middle, centered.clone())])?;
    }
    Ok(())
}

/// The corners of a curve that changes in steps.
fn steps(chart: &Chart, recording: &Recording, count: Count) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (time, counts) in &recording.counts {
        let value = chart.position(count(*counts));
        match corners.last() {
            Some((_, last)) if *last == value => {}
            Some((_, last)) => corners.extend([(*time, *last), (*time, value)]),
            None => corners.push((*time, value)),
        }
    }
    corners.extend(corners.last().map(|(_, last)| (recording.end, *last)));
    corners
}
