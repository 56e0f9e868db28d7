// The beginning and the end of a recording.

#include <cstring>

#include "arena/arena_state.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "blocks/thread_registry.hpp"
#include "platform/environment.hpp"
#include "platform/tools/memory_tools.hpp"
#include "trace/recorder.hpp"

namespace tensorpool::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

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

void name_scopes(Rings& rings) noexcept {
    const auto* const header = statistics::segment().header();
    if (header == nullptr) return;
    const auto* const scopes = statistics::records_in<statistics::ScopeRecord>(*header);
    const std::size_t used =
        header->region<statistics::ScopeRecord>().used.load(std::memory_order_acquire);
    for (std::size_t i = 1; i < used; ++i) {
        char name[statistics::Name::bytes];
        statistics::load_name(scopes[i].name, name);
        rings.name(TraceSource::scope, scopes[i].id.load(relaxed), name);
    }
}

void name_everything(Rings& rings) noexcept {
    events::snapshot_sources().for_each([&](const events::SnapshotSource& source) {
        const auto identity = source.identify();
        rings.name(identity.kind, identity.number, identity.name);
    });
    name_scopes(rings);
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

// The lock of the sources is a leaf, so the thread takes its ring before it.
void Recorder::record_capacities() noexcept {
    writer_.prepare();
    events::snapshot_sources().for_each(
        [](const events::SnapshotSource& source) { source.record_capacity(); });
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
