//! The attributes of events without the parts of samples that do not stay.

use perfdata_core::attr::{Attr, EventType, SampleType};
use perfdata_core::content::{Content, Rewrite};
use perfdata_core::record::Sample;

use super::State;
use crate::addresses::Space;
use crate::policy::{Action, Kept};

impl State {
    /// Returns the parts of a sample that the recording must not contain.
    pub(crate) fn removed_parts(&self) -> SampleType {
        let removed = Sample::CONTENTS
            .iter()
            .filter(|(_, content)| self.policy.action(*content) == Action::Remove);
        SampleType(removed.fold(0, |all, (part, _)| all | part.0))
    }

    /// Returns the attribute without the parts of samples, the addresses and the unknown content
    /// that the recording must not contain.
    pub(crate) fn attr(&mut self, attr: &Attr) -> Attr {
        let mut removed = self.removed_parts();
        if attr.kind == EventType::TRACEPOINT
            && self.policy.action(Content::Raw) == Action::Replace
            && !self.raw.has(attr.config)
        {
            removed = removed | SampleType::RAW;
        }
        if attr.kind != EventType::TRACEPOINT && !self.policy.keeps(Kept::Raw) {
            removed = removed | SampleType::RAW;
        }
        let unplaced = SampleType(attr.sample_type.0 & !attr.placed_parts().0);
        let mut new = attr.without(removed | unplaced);
        let configs = [
            Some(attr.config),
            Some(attr.config1),
            attr.config2,
            attr.config3,
            attr.config4,
        ];
        new.rewrite("attr", Content::Fields, self);
        let [config, config1, config2, config3, config4] = self.configs(attr, configs);
        new.config = config.unwrap_or(0);
        new.config1 = config1.unwrap_or(0);
        (new.config2, new.config3, new.config4) = (config2, config3, config4);
        new
    }

    /// Returns the words that configure an event: numbers of its PMU stay, addresses do not.
    fn configs(&mut self, attr: &Attr, configs: [Option<u64>; 5]) -> [Option<u64>; 5] {
        if self.policy.action(Content::Config) == Action::Keep {
            return configs;
        }
        let pmu = self.pmus.get(&attr.kind.0).map(Vec::as_slice);
        let [config, config1, config2, config3, config4] = configs;
        let zero = |word: Option<u64>| word.map(|_| 0);
        let [config, config1, config2, config3, config4] = match attr.kind {
            EventType::BREAKPOINT => {
                let address = config1.map(|address| self.address(Space::Any, address));
                let len = config2.map(|len| if len <= PAGE { len } else { 0 });
                return [config, address, len, zero(config3), zero(config4)];
            }
            EventType::SOFTWARE | EventType::TRACEPOINT => [
                config,
                zero(config1),
                zero(config2),
                zero(config3),
                zero(config4),
            ],
            EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW => configs,
            _ => match pmu {
                // Whether it probes the return; the rest are addresses and offsets in programs.
                Some(b"kprobe" | b"uprobe") => {
                    let config = config.map(|config| config & 1);
                    [
                        config,
                        zero(config1),
                        zero(config2),
                        zero(config3),
                        zero(config4),
                    ]
                }
                Some(_) => configs,
                None => [
                    zero(config),
                    zero(config1),
                    zero(config2),
                    zero(config3),
                    zero(config4),
                ],
            },
        };
        [config, config1, config2, config3, config4].map(|word| {
            word.map(|word| {
                if self.addresses.is_original(word) {
                    0
                } else {
                    word
                }
            })
        })
    }
}

/// Largest length of a breakpoint that is not taken for an address, in bytes.
const PAGE: u64 = 4096;
