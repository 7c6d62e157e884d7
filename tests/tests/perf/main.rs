//! perf as the judge of the results of conversions.

mod aux_cuts_perf;
mod callchain_perf;
mod file2pipe_perf;
mod folded_perf;
mod inject_words_perf;
mod inlines_perf;
mod itrace_perf;
mod jit_perf;
mod judges;
mod memory_perf;
mod merge_perf;
mod off_cpu_perf;
mod perf_maps_perf;
mod pipe2file_perf;
mod sanitize_perf;
mod sched_stat_perf;
mod script_perf;
mod session_perf;
mod slice_perf;
mod slice_reports_perf;
mod sort_perf;
mod swap_perf;
mod symbols_perf;
mod synth_perf;
mod thin_perf;
mod tracepoint_perf;
