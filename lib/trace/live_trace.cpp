#include <tensorpool/live_trace.hpp>

#include "trace/ring_view.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool {
namespace {

using namespace trace;

template <class T>
std::span<const std::byte> bytes_of(const T* first, std::size_t count) noexcept {
    return {reinterpret_cast<const std::byte*>(first), count * sizeof(T)};
}

}  // namespace

TraceMoment trace_moment() noexcept {
    return {.cycles = platform::cycle_counter(), .unix_ns = trace::steady_unix_ns()};
}

struct LiveTrace::State {
    std::uint64_t process = 0;  // its number as this process sees it
    RingView view;
    bool reported_process = false;
    std::size_t names = 0;  // already reported, like the next
    std::size_t modules = 0;

    // Finds the rings of the requested recording. The process closes their descriptor when a
    // recording ends.
    bool find_rings() {
        if (view.has_rings()) return true;
        const std::uint64_t own = platform::own_name_of(process).number;
        auto held = platform::memory_files_of(process, "tensorpool-rings");
        for (auto& [descriptor, file] : held.files) {
            RingView found;
            if (found.open_rings(std::move(file)) || found.header().process.process != own)
                continue;
            view.take_rings_of(found);
            return true;
        }
        return false;
    }
    void report_tables(const std::function<void(const TracePart&)>& use) {
        if (!std::exchange(reported_process, true)) {
            use({.kind = TraceChunkKind::process, .payload = bytes_of(&view.header().process, 1)});
        }
        if (const std::size_t now = view.names(); now > names) {
            use({.kind = TraceChunkKind::names,
                 .payload = bytes_of(view.name_table() + names, now - names)});
            names = now;
        }
        if (const std::size_t now = view.modules(); now > modules) {
            use({.kind = TraceChunkKind::modules,
                 .payload = bytes_of(view.module_table() + modules, now - modules)});
            modules = now;
        }
    }
    std::size_t report_entries(std::size_t ring, std::uint64_t until,
                               const std::function<void(const TracePart&)>& use) {
        const RingHead& head = view.head(ring);
        Counter& tail = view.control().tails[ring];
        std::uint64_t from = tail.load(relaxed);
        if (until - from > ring_entries) {
            fail_to_attach(process, AttachFailure::damaged,
                           "ring " + std::to_string(ring) + " has " + std::to_string(until - from) +
                               " entries to read; expected " + std::to_string(ring_entries) +
                               " at most");
        }
        const std::size_t count = until - from;
        while (from != until) {
            const std::size_t begin = from % ring_entries;
            const std::size_t piece = std::min<std::size_t>(until - from, ring_entries - begin);
            use({.kind = TraceChunkKind::entries,
                 .ring = static_cast<std::uint32_t>(ring),
                 .dropped = head.dropped.load(relaxed),
                 .payload = bytes_of(view.entries(ring) + begin, piece)});
            from += piece;
            // Pairs with the writer's acquire: entries are read before they may be overwritten.
            tail.store(from, std::memory_order_release);
        }
        return count;
    }
};

LiveTrace::LiveTrace(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
LiveTrace::LiveTrace(LiveTrace&&) noexcept = default;
LiveTrace& LiveTrace::operator=(LiveTrace&&) noexcept = default;
LiveTrace::~LiveTrace() = default;

LiveTrace LiveTrace::ask(std::uint64_t process, std::uint64_t stack_interval) {
    auto state = std::make_unique<State>();
    state->process = process;
    platform::ObservedFile control_file = find_control(process, "to record");
    if (const auto problem = state->view.open_control(std::move(control_file))) {
        fail_to_attach(process, AttachFailure::system, *problem);
    }
    Control& control = state->view.control();
    control.stack_interval.store(stack_interval, relaxed);
    control.beats.fetch_add(1, relaxed);
    // Odd: a recording is wanted. If a killed recorder left it odd, the next odd number requests a
    // new one.
    control.asked.fetch_add(control.asked.load(relaxed) % 2 == 0 ? 1 : 2,
                            std::memory_order_release);
    platform::wake_waiter(control.wake);
    return LiveTrace(std::move(state));
}

LiveTrace LiveTrace::take_over(int control, int rings) {
    platform::ObservedFile control_file(control);
    platform::ObservedFile rings_file(rings);
    auto state = std::make_unique<State>();
    auto problem = state->view.open_control(std::move(control_file));
    if (!problem) problem = state->view.open_rings(std::move(rings_file));
    if (problem) fail_to_attach(0, AttachFailure::damaged, *problem);
    state->process = state->view.header().process.process;
    return LiveTrace(std::move(state));
}

bool LiveTrace::has_begun() const noexcept {
    return state_->view.has_rings();
}

std::size_t LiveTrace::look(const std::function<void(const TracePart&)>& use) {
    State& state = *state_;
    state.view.control().beats.fetch_add(1, relaxed);
    if (!state.find_rings()) return 0;
    // Counts are read before the tables, so that the tables hold everything that the entries refer
    // to.
    std::array<std::uint64_t, ring_count> until{};
    const std::size_t rings = state.view.rings();
    for (std::size_t ring = 0; ring < rings; ++ring) {
        until[ring] = state.view.head(ring).written.load(std::memory_order_acquire);
    }
    state.report_tables(use);
    std::size_t count = 0;
    for (std::size_t ring = 0; ring < rings; ++ring) {
        count += state.report_entries(ring, until[ring], use);
    }
    return count;
}

void LiveTrace::stop() noexcept {
    Control& control = state_->view.control();
    // Another even number: a process that recorded from its start never had an odd one.
    control.asked.fetch_add(control.asked.load(relaxed) % 2 == 0 ? 2 : 1,
                            std::memory_order_release);
    platform::wake_waiter(control.wake);
}

bool LiveTrace::has_ended() const noexcept {
    return state_->view.has_rings() &&
           state_->view.header().ended.load(std::memory_order_acquire) != 0;
}

std::uint64_t LiveTrace::process() const noexcept {
    return state_->process;
}

std::uint64_t LiveTrace::threads_left_out() const noexcept {
    return has_begun() ? state_->view.header().left_out.load(relaxed) : 0;
}

std::uint64_t LiveTrace::names_left_out() const noexcept {
    return has_begun() ? state_->view.header().names_dropped.load(relaxed) : 0;
}

}  // namespace tensorpool
