//! Families of figures as text, in either format that is read: Prometheus' own, and OpenMetrics for who asks for it.

use crate::figures::{Count, Spread};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::fmt;

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' text format 0.0.4.
    Plain,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// How it is called in `Accept` and `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format that somebody wants who accepts this. Whoever wants neither gets the plain one, which anybody can read.
    pub fn wanted<'a>(accepted: impl Iterator<Item = &'a str>) -> Self {
        let (mut plain, mut open) = (0.0, 0.0);
        for range in accepted.flat_map(|header| header.split(',')) {
            let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
            let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            let weight = weight.map_or(1.0, |weight| weight.trim().parse::<f64>().unwrap_or_default());
            match kind.trim().to_ascii_lowercase().as_str() {
                "application/openmetrics-text" => open = weight,
                "text/plain" | "text/*" | "*/*" if weight > plain => plain = weight,
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Plain }
    }
}

/// What kind of figures those of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How long something took, each time.
    Histogram,
    /// It is 1, and its labels say something.
    Info,
}

/// One figure.
#[derive(Debug, Clone)]
pub(super) enum Figure {
    Number(f64),
    Spread(Spread),
}

impl From<f64> for Figure {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Figure {
    fn from(number: u64) -> Self {
        // Exact up to 2^53, as everything is that Prometheus keeps.
        Self::Number(number as f64)
    }
}

impl From<usize> for Figure {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<bool> for Figure {
    fn from(is: bool) -> Self {
        Self::Number(if is { 1.0 } else { 0.0 })
    }
}

impl From<&Count> for Figure {
    fn from(count: &Count) -> Self {
        count.get().into()
    }
}

impl From<Spread> for Figure {
    fn from(spread: Spread) -> Self {
        Self::Spread(spread)
    }
}

/// What tells the figures of a family apart.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Figures of one kind.
#[derive(Debug)]
pub(super) struct Family {
    kind: Kind,
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    figures: Vec<(Labels, Figure)>,
}

impl Family {
    /// A family without figures. `_total`, `_info` and the unit are added to the name.
    pub fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        Self { kind, name, unit: None, help, figures: Vec::new() }
    }

    /// The same, in this unit.
    pub fn in_unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// The same, with one figure, if there is one.
    pub fn one(self, figure: impl Into<Option<Figure>>) -> Self {
        self.each(figure.into().map(|figure| (Labels::new(), figure)))
    }

    /// The same, with these figures.
    pub fn each<F: Into<Figure>>(mut self, figures: impl IntoIterator<Item = (Labels, F)>) -> Self {
        self.figures.extend(figures.into_iter().map(|(labels, figure)| (labels, figure.into())));
        self
    }
}

/// Writes the families.
///
/// # Errors
/// Never, as far as is known: texts take what is written in them.
pub(super) fn written(families: Vec<Family>, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut out = String::new();
    match format {
        Format::Plain => prometheus_text::encode(&mut out, &registry)?,
        Format::OpenMetrics => text::encode(&mut out, &registry)?,
    }
    Ok(out)
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| encode(family, &mut encoder))
    }
}

fn encode(family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::Info => MetricType::Info,
    };
    let mut metric = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), kind)?;
    for (labels, figure) in &family.figures {
        let labels = labels.as_slice();
        match (family.kind, figure) {
            (Kind::Info, _) => metric.encode_info(&labels)?,
            (Kind::Counter, Figure::Number(n)) => {
                metric.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], f64, f64>(n, None)?;
            }
            (_, Figure::Number(n)) => metric.encode_family(&labels)?.encode_gauge(n)?,
            (_, Figure::Spread(Spread { classes, sum, count })) => {
                let none: Option<&HashMap<usize, Exemplar<[(&str, &str); 0], f64>>> = None;
                metric.encode_family(&labels)?.encode_histogram(*sum, *count, classes, none)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_openmetrics_gets_it() {
        let wanted = |accept: &str| Format::wanted([accept].into_iter());
        for accept in [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/plain;q=0.2, Application/OpenMetrics-Text; q=0.3",
        ] {
            assert_eq!(wanted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in
            ["", "*/*", "text/plain", "application/openmetrics-text;q=0", "application/openmetrics-text;q=0.1,*/*"]
        {
            assert_eq!(wanted(accept), Format::Plain, "{accept}");
        }
    }
}
