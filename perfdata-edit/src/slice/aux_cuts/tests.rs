//! Cuts of made AUX data.

use super::*;
use perfdata_convert::io::Input;
use perfdata_core::Endian;
use perfdata_write::{PipePlan, PipeWriter, RecordSink};

const CLOCK: Clock = Clock(CycleClock {
    shift: 10,
    mult: 512,
    zero: 1_000,
});

/// Returns a PSB packet with its state, for the time `1_000 + time`, and `rest` bytes after it.
fn psb(time: u64, rest: usize) -> Vec<u8> {
    let mut bytes = [0x02, 0x82].repeat(8);
    bytes.push(0x19);
    bytes.extend((2 * time).to_le_bytes().iter().take(7));
    bytes.extend([0x02, 0x23]);
    bytes.extend(vec![0x01; rest]);
    bytes
}

/// Returns the cuts of a recording with these pieces, each with the number of its buffer.
fn cuts(info: &IntelPt, pieces: &[(u32, &[u8])], range: TimeRange) -> Result<Vec<Cut>> {
    let model = Recording::new(Endian::Little);
    let plan = PipePlan::standard(&model, PipePlan::END);
    let mut writer = PipeWriter::begin(Vec::new(), plan, &model)?;
    let mut put = |kind, body| -> Result<()> {
        let record = Record {
            kind,
            misc: 0,
            body,
            tail: Vec::new(),
            sample_id: None,
        };
        let bytes = record.encode(Endian::Little)?;
        Ok(writer.record(&RawRecord::first(&bytes, Endian::Little, 0)?)?)
    };
    put(
        RecordType::AUXTRACE_INFO,
        Body::AuxtraceInfo(AuxtraceInfo {
            kind: perfdata_core::record::AuxtraceType::INTEL_PT,
            reserved: 0,
            private: AuxtracePrivate::IntelPt(info.clone()),
        }),
    )?;
    let mut bytes = writer.finish()?;
    for &(idx, data) in pieces {
        let mut writer = PipeWriter::bare(bytes);
        let record = Record {
            kind: RecordType::AUXTRACE,
            misc: 0,
            body: Body::Auxtrace(piece(idx, data.len() as u64)),
            tail: Vec::new(),
            sample_id: None,
        };
        let head = record.encode(Endian::Little)?;
        writer.record(&RawRecord::first(&head, Endian::Little, 0)?)?;
        writer.payload(data)?;
        bytes = writer.finish()?;
    }
    let (reader, source) = Input::from_source(bytes).reader()?;
    let cuts = AuxCuts::of(&source, reader.recording(), vec![range])?;
    Ok((0..pieces.len() as u64).map(|at| cuts.get(0, at)).collect())
}

fn piece(idx: u32, size: u64) -> Auxtrace {
    Auxtrace {
        size,
        offset: 4096,
        reference: 0,
        idx,
        tid: 5,
        cpu: 6,
        reserved: 0,
    }
}

fn info() -> IntelPt {
    IntelPt {
        pmu_type: 8,
        time_shift: CLOCK.0.shift,
        time_mult: CLOCK.0.mult,
        time_zero: CLOCK.0.zero,
        cap_user_time_zero: 1,
        tsc_bit: 0x400,
        noretcomp_bit: 0x800,
        have_sched_switch: 3,
        snapshot_mode: 0,
        per_cpu_mmaps: 1,
        mtc_bit: None,
        mtc_freq_bits: None,
        tsc_ctc_n: None,
        tsc_ctc_d: None,
        cyc_bit: None,
        max_nonturbo_ratio: None,
        filter_str_len: None,
        filter: Default::default(),
        event_trace: None,
    }
}

fn range(start: impl Into<Option<u64>>, end: impl Into<Option<u64>>) -> TimeRange {
    TimeRange {
        start: start.into().unwrap_or(0),
        end: end.into(),
    }
}

fn cut(skip: u64, len: u64) -> Cut {
    Cut { skip, len }
}

/// Points at 100, 200, 300 and 400, each 126 bytes, in pieces that split the third one.
#[test]
fn each_queue_is_cut_at_its_points() -> Result<()> {
    let data: Vec<u8> = [100, 200, 300, 400]
        .into_iter()
        .flat_map(|time| psb(time, 100))
        .collect();
    let (one, rest) = data.split_at_checked(258).unwrap_or_default();
    let (two, three) = rest.split_at_checked(150).unwrap_or_default();
    let other = psb(5_000, 14);
    let pieces: [(u32, &[u8]); 4] = [(0, one), (7, &other), (0, two), (0, three)];
    let all = |range| cuts(&info(), &pieces, range);
    let whole = Cut::WHOLE;
    assert_eq!(all(range(None, None))?, [whole; 4]);
    assert_eq!(all(range(1_099, None))?, [whole; 4]);
    // The second point is at 126, the third one at 252, the fourth one at 378.
    assert_eq!(
        all(range(1_200, None))?,
        [cut(120, 138), whole, whole, whole]
    );
    assert_eq!(
        all(range(1_299, None))?,
        [cut(120, 138), whole, whole, whole]
    );
    assert_eq!(
        all(range(1_300, None))?,
        [cut(248, 10), whole, whole, whole]
    );
    assert_eq!(
        all(range(1_400, None))?,
        [cut(258, 0), whole, cut(120, 30), whole]
    );
    // The state of the first point behind the end is kept: it ends at 152, at 278, at 404.
    assert_eq!(
        all(range(None, 1_100))?,
        [cut(0, 152), cut(0, 32), cut(0, 0), cut(0, 0)]
    );
    assert_eq!(
        all(range(None, 1_200))?,
        [whole, cut(0, 32), cut(0, 24), cut(0, 0)]
    );
    assert_eq!(all(range(None, 5_999))?, [whole, cut(0, 32), whole, whole]);
    assert_eq!(all(range(None, 6_000))?, [whole; 4]);
    assert_eq!(
        all(range(1_310, 1_320))?,
        [cut(248, 10), cut(0, 32), whole, cut(0, 0)]
    );
    Ok(())
}

#[test]
fn times_that_go_back_keep_more() -> Result<()> {
    let data: Vec<u8> = [100, 400, 200, 500]
        .into_iter()
        .flat_map(|time| psb(time, 102))
        .collect();
    let one = |range| Ok::<_, Error>(cuts(&info(), &[(0, &data)], range)?.first().copied());
    assert_eq!(one(range(1_250, None))?, Some(Cut::WHOLE));
    assert_eq!(one(range(None, 1_250))?, Some(cut(0, 416)));
    assert_eq!(one(range(None, 1_450))?, Some(cut(0, 416)));
    Ok(())
}

#[test]
fn other_data_are_kept_whole() -> Result<()> {
    let data: Vec<u8> = [100, 200, 300]
        .into_iter()
        .flat_map(|time| psb(time, 102))
        .collect();
    let pieces: [(u32, &[u8]); 1] = [(0, &data)];
    let span = range(1_250, 1_260);
    assert_ne!(cuts(&info(), &pieces, span)?, [Cut::WHOLE]);
    let changes: [fn(&mut IntelPt); 3] = [
        |info| info.snapshot_mode = 1,
        |info| info.cap_user_time_zero = 0,
        |info| info.time_shift = 64,
    ];
    for change in changes {
        let mut info = info();
        change(&mut info);
        assert_eq!(cuts(&info, &pieces, span)?, [Cut::WHOLE]);
    }
    Ok(())
}

#[test]
fn a_cut_changes_size_and_offset() {
    let changed = apply(&piece(3, 100), cut(24, 50));
    assert_eq!((changed.size, changed.offset), (50, 4120));
    assert_eq!((changed.idx, changed.tid, changed.cpu), (3, 5, 6));
    assert_eq!(apply(&piece(3, 100), Cut::WHOLE), piece(3, 100));
    let bytes: Vec<u8> = (0..100).collect();
    let kept = bytes
        .chunks(7)
        .enumerate()
        .flat_map(|(at, part)| cut(24, 50).of(7 * at as u64, part).to_vec());
    assert!(kept.eq(24..74));
    assert_eq!(Cut::WHOLE.of(1_000, &bytes), bytes);
}

#[test]
fn the_high_bits_of_a_time_are_those_near_the_reference() {
    let clock = Clock(CycleClock {
        shift: 0,
        mult: 1,
        zero: 0,
    });
    let whole = 1 << 56;
    assert_eq!(clock.time(5, 3 * whole + 10), 3 * whole + 5);
    assert_eq!(clock.time(5, 4 * whole - 10), 4 * whole + 5);
    assert_eq!(clock.time(whole - 5, 4 * whole + 10), 4 * whole - 5);
    assert_eq!(CLOCK.time(3_072, 0), 2_536);
}
