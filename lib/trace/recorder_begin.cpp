// The beginning and the end of a recording.

#include <cstring>

#include "arena/arena_state.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "blocks/thread_registry.hpp"
#include "platform/environment.hpp"
#include "platform/tools/memory_tools.hpp"
#include "statistics/records/record_values.hpp"
#include "trace/recorder.hpp"

namespace tensorpool::trace {
namespace {

// For a recording from the first call, the environment says it; later, the process that requests
// it.
std::uint64_t stack_interval(const Control& control, bool from_start) noexcept {
    if (!from_start) return control.stack_interval.load(relaxed);
    const char* const text = platform::environment_variable("TENSORPOOL_TRACE_STACKS");
    if (text == nullptr || *text == '\0') return 0;
    const auto bytes = platform::parse_bytes(text);
    if (bytes) return *bytes;
    platform::say(
        "TENSORPOOL_TRACE_STACKS is '%.60s'; expected a size such as 512KiB; used instead: no "
        "stacks",
        text);
    return 0;
}

std::uintptr_t unused_frame;

TraceProcess describe_process(std::uint64_t stack_interval, bool from_start) noexcept {
    const platform::ProcessIdentity self = platform::identify_process();
    TraceProcess process{.process = self.number,
                         .name_space = self.name_space,
                         .start_ticks = self.start_ticks,
                         .begun_cycles = platform::cycle_counter(),
                         .begun_unix_ns = steady_unix_ns(),
                         .page_bytes = platform::page_bytes(),
                         .stack_interval = stack_interval,
                         .from_start = from_start ? 1U : 0U,
                         .name = {}};
    std::memcpy(process.name, self.name, sizeof self.name);
    return process;
}

using statistics::Counter;
using statistics::RecordKind;

/// Returns the name of the list of records, such as "scratches", that shows this one.
std::string_view list_of(const RecordKind& kind, const Counter* record) noexcept {
    if (&kind == &statistics::PoolRecord::layout) return "pools";
    if (kind.table == nullptr) return "";
    const statistics::RecordTable& table = *kind.table;
    const bool is_apart =
        !table.apart.empty() && statistics::choice_of(table, record) + 1 ==
                                    statistics::count_of_values(table.choice.values);
    return is_apart ? table.apart : table.name;
}

/// Calls `function` with each record that a trace refers to: with its kind of source, its number,
/// its kind and itself.
template <class Function>
void for_each_source(Function function) noexcept {
    static constexpr std::pair<std::string_view, TraceSource> sources[] = {
        {"pools", TraceSource::pool},        {"arenas", TraceSource::arena},
        {"scratches", TraceSource::scratch}, {"devices", TraceSource::device},
        {"planned", TraceSource::planned},   {"scopes", TraceSource::scope}};
    statistics::segment().for_each_record([&](const RecordKind& kind, const Counter* record) {
        const std::uint64_t id = record[kind.id / sizeof *record].load(relaxed);
        const std::string_view list = list_of(kind, record);
        for (const auto& [name, source] : sources) {
            if (name == list && id != 0) function(source, id, kind, record);
        }
    });
}

void name_everything(Rings& rings) noexcept {
    for_each_source(
        [&](TraceSource source, std::uint64_t id, const RecordKind& kind, const Counter* record) {
            char name[statistics::Name::bytes];
            statistics::load_text(
                {record + kind.name / sizeof *record, sizeof name / sizeof *record}, name);
            rings.name(source, id, name);
        });
}

void hide_quick_paths() noexcept {
    blocks::thread_registry().hide_caches();
    arena::arena_registry().show_quick_paths(false);
    arena::scratch_registry().show_quick_paths(false);
}

}  // namespace

// Steps that may fail come first. Names follow, so that no recorded call refers to an unnamed
// source, and then the hook. After the hook come the present capacities, since from then on each
// change is recorded. Closing the inline paths is the last step.
bool Recorder::begin(Target target, bool from_start) noexcept {
    if (target == Target::reader && recording_.control.load(relaxed) == nullptr) return false;
    if (target == Target::file && make_private_control() == nullptr) return false;
    const auto sharing = target == Target::reader ? Rings::Sharing::yes : Rings::Sharing::no;
    const std::uint64_t interval = stack_interval(*recording_.control.load(relaxed), from_start);
    if (!recording_.rings.make(sharing, describe_process(interval, from_start))) return false;
    if (interval != 0) (void)platform::capture_stack(&unused_frame, 1);  // its one-time set-up
    if (target == Target::file && !file_.open(platform::environment_variable("TENSORPOOL_TRACE"))) {
        return true;  // reported on stderr
    }
    if (target == Target::reader) {
        for (Counter& tail : recording_.control.load(relaxed)->tails) tail.store(0, relaxed);
    }
    recording_.target.store(target, relaxed);
    recording_.number.fetch_add(1, std::memory_order_release);
    auto& hooks = events::recorder_hooks;
    hooks.name.store([](TraceSource kind, std::uint64_t source,
                        std::string_view name) noexcept { recorder().name(kind, source, name); },
                     std::memory_order_release);
    name_everything(recording_.rings);
    hooks.record.store(record, std::memory_order_release);
    record_capacities();
    hide_quick_paths();
    // If the file accepts no data, the recording is given up already.
    if (hooks.record.load(relaxed) == nullptr) end_given_up();
    return true;
}

// Where a memory tool is present, the inline paths stay hidden from the first use on.
void Recorder::show_quick_paths() noexcept {
    if (platform::has_memory_tool()) return;
    arena::scratch_registry().show_quick_paths(true);
    arena::arena_registry().show_quick_paths(true);
    blocks::thread_registry().show_caches();
}

void Recorder::end() noexcept {
    auto& hooks = events::recorder_hooks;
    hooks.record.store(nullptr, relaxed);
    hooks.name.store(nullptr, relaxed);
    show_quick_paths();
    recording_.rings.end();
    recording_.target.store(Target::none, relaxed);
}

// Threads that have not seen the end yet may still write to a file.
void Recorder::end_given_up() noexcept {
    if (recording_.target_now() == Target::reader) end();
    if (recording_.target_now() == Target::file) show_quick_paths();
}

void Recorder::record_capacities() noexcept {
    writer_.prepare();
    const auto record_held = [](std::uint64_t id, const Counter& bytes) {
        if (bytes.load(relaxed) != 0) events::record_capacity(id, bytes);
    };
    for_each_source([&](TraceSource, std::uint64_t id, const RecordKind& kind,
                        const Counter* record) {
        if (&kind == &statistics::PoolRecord::layout) {
            constexpr std::size_t word = offsetof(statistics::PoolRecord, totals.capacity_bytes);
            return record_held(id, record[word / sizeof *record]);
        }
        for (const statistics::Field& field : kind.table->shown_fields()) {
            if (field.name == "capacity_bytes") {
                record_held(id, record[field.word / sizeof *record]);
            }
        }
    });
}

Control* Recorder::make_private_control() noexcept {
    if (Control* const known = recording_.control.load(relaxed)) return known;
    void* const memory = platform::map(control_bytes, platform::page_bytes());
    if (memory == nullptr) return nullptr;
    auto* const control = new (memory) Control{};
    keep_from_children(*control);
    recording_.control.store(control, std::memory_order_release);
    return control;
}

}  // namespace tensorpool::trace
