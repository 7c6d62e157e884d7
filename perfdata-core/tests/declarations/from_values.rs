//! What a value tells a visitor makes the same value again: `FromValues` is the inverse of
//! `Describe`.

use perfdata_core::decode_context::BranchForm;
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{Feature, Section};
use perfdata_core::record::{Body, Sample};
use perfdata_core::values::Values;
use perfdata_core::wire::until_nul;

use crate::{feature_values, records};

/// One step of a walk.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Begin(&'static str),
    List(&'static str, usize),
    End,
    Number(&'static str, usize, u64),
    Text(&'static str, Vec<u8>),
    Bytes(&'static str, Vec<u8>),
}

impl Step {
    fn name(&self) -> Option<&'static str> {
        match self {
            Step::Begin(name) | Step::List(name, _) | Step::Number(name, ..) => Some(name),
            Step::Text(name, _) | Step::Bytes(name, _) => Some(name),
            Step::End => None,
        }
    }
}

/// The steps of a walk, without counts and fillings.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn of(value: &impl Describe) -> Vec<Step> {
        let mut steps = Steps::default();
        value.describe("", Style::Plain, &mut steps);
        steps.0
    }
}

impl Visitor for Steps {
    fn begin(&mut self, name: &'static str) {
        self.0.push(Step::Begin(name));
    }

    fn begin_list(&mut self, name: &'static str, len: usize) {
        self.0.push(Step::List(name, len));
    }

    fn end(&mut self) {
        self.0.push(Step::End);
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        self.0.push(match value {
            Leaf::Count(_) | Leaf::Pad(_) | Leaf::Uint(_, Style::Pad) => return,
            Leaf::Uint(number, _) | Leaf::Code(number, ..) | Leaf::Flags { word: number, .. } => {
                Step::Number(name, size, number)
            }
            Leaf::Int(number) => Step::Number(name, size, number.cast_unsigned()),
            Leaf::Float(number) => Step::Number(name, size, number.to_bits()),
            Leaf::Text(bytes) => Step::Text(name, until_nul(bytes).to_vec()),
            Leaf::Bytes(bytes) | Leaf::Opaque(bytes) => Step::Bytes(name, bytes.to_vec()),
            other => panic!("{name}: {other:?} is new"),
        });
    }
}

/// Gives what a walk told, and insists that it is asked for in the same order.
struct Replay(std::iter::Peekable<std::vec::IntoIter<Step>>);

impl Replay {
    fn of(value: &impl Describe) -> Self {
        Replay(Steps::of(value).into_iter().peekable())
    }
}

impl Values for Replay {
    fn begin(&mut self, name: &'static str) {
        assert_eq!(self.0.next(), Some(Step::Begin(name)));
    }

    fn begin_list(&mut self, name: &'static str) -> usize {
        match self.0.next() {
            Some(Step::List(found, len)) if found == name => len,
            other => panic!("{other:?} in place of the list {name}"),
        }
    }

    fn end(&mut self) {
        assert_eq!(self.0.next(), Some(Step::End));
    }

    fn has(&mut self, name: &'static str) -> bool {
        self.0.peek().and_then(Step::name) == Some(name)
    }

    fn number(&mut self, name: &'static str, size: usize, _: Leaf<'static>) -> u64 {
        match self.0.next() {
            Some(Step::Number(found, bytes, number)) if (found, bytes) == (name, size) => number,
            other => panic!("{other:?} in place of the number {name} of {size} bytes"),
        }
    }

    fn text(&mut self, name: &'static str, most: usize) -> Vec<u8> {
        match self.0.next() {
            Some(Step::Text(found, text)) if found == name && text.len() <= most => text,
            other => panic!("{other:?} in place of the text {name}"),
        }
    }

    fn bytes(&mut self, name: &'static str, len: Option<usize>) -> Vec<u8> {
        match self.0.next() {
            Some(Step::Bytes(found, bytes))
                if found == name && len.is_none_or(|len| len == bytes.len()) =>
            {
                bytes
            }
            other => panic!("{other:?} in place of the bytes {name}, {len:?}"),
        }
    }

    fn refuse(&mut self, why: String) {
        panic!("{why}");
    }
}

#[test]
fn every_feature_is_made_from_what_it_tells() {
    for case in feature_values::cases() {
        if matches!(case.value, Feature::Empty | Feature::Unknown(_)) {
            continue;
        }
        let mut replay = Replay::of(&case.value);
        // What the section does not say itself.
        let is_old = matches!(&case.value, Feature::BuildIds(ids) if ids.0.iter().any(|entry| entry.build_id.pid.is_none()));
        let layout = feature_values::layout().with_build_id_without_pid(is_old);
        let made = Section::from_values(case.id, &mut replay, &layout).expect("a known feature");
        assert_eq!(replay.0.next(), None, "{}", case.id);
        assert_eq!(
            Steps::of(&made.value),
            Steps::of(&case.value),
            "{}",
            case.id
        );
    }
}

#[test]
fn every_record_is_made_from_what_it_tells() {
    for case in records::values::all() {
        // Parts behind those that nobody knows stay bytes.
        let is_cut = matches!(case.record.body, Body::Sample(_)) && !case.record.tail.is_empty();
        if matches!(case.record.body, Body::Unknown(_)) || is_cut {
            continue;
        }
        let trailer = case
            .record
            .sample_id
            .as_ref()
            .map_or(0, |_| case.layout.trailer_len());
        let len = (case.little.len() - 8 - trailer) as u64;
        let layout = case.layout.with_misc(case.record.misc).with_len(len);
        let layout = match &case.record.body {
            Body::Sample(Sample {
                branch_stack: Some(stack),
                ..
            }) => {
                let branch_form = BranchForm {
                    hw_idx: stack.hw_idx.is_some(),
                    counters: !stack.counters.is_empty(),
                };
                layout.with_branch_form(branch_form)
            }
            Body::Mmap2(map) => layout
                .with_mmap2_without_protection(map.prot.is_none())
                .with_mmap2_with_build_id(map.build_id.is_some()),
            _ => layout,
        };
        let mut replay = Replay::of(&case.record.body);
        let made = Body::from_values(case.record.kind, &mut replay, layout).expect("a known type");
        assert_eq!(replay.0.next(), None, "{}", case.record.kind);
        assert_eq!(
            Steps::of(&made),
            Steps::of(&case.record.body),
            "{}",
            case.record.kind
        );
    }
}
