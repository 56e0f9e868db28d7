#include "stress/devices/small_programs.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tensorpool::stress::devices {
namespace {

constexpr std::size_t small = 4096;
constexpr std::size_t large = 4 * granule;

void reuse_on_its_stream(SmallDevice& device, Site& site) {
    void* const first = device.memory(*site.memory, small, device.one);
    device.writes(device.one, first, small, "first write");
    device.free(*site.memory, first);
    void* const second = device.memory(*site.memory, small, device.one);
    device.writes(device.one, second, small, "second write");
    void* const other = device.memory(*site.memory, small, device.two);
    device.writes(device.two, other, small, "write of another stream");
    device.reads(device.one, second, small);
    device.free(*site.memory, second);
    device.free(*site.memory, other);
}

void free_while_another_stream_uses(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, small, device.one);
    device.writes(device.one, block, small);
    device.orders(device.one, device.two);
    device.reads(device.two, block, small);
    site.memory->record_use(block, device.two);
    device.free(*site.memory, block);
    for (int i = 0; i < 2; ++i) {
        void* const next = device.memory(*site.memory, small, device.one);
        device.writes(device.one, next, small, "write of the next");
        device.free(*site.memory, next);
    }
}

void free_while_two_streams_use(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, small, nullptr);
    device.writes(nullptr, block, small);
    for (const StreamHandle stream : {device.one, device.two}) {
        device.orders(nullptr, stream);
        device.reads(stream, block, small);
        site.memory->record_use(block, stream);
    }
    device.free(*site.memory, block);
    void* const next = device.memory(*site.memory, small, nullptr);
    device.writes(nullptr, next, small, "write of the next");
    device.free(*site.memory, next);
    void* const last = device.memory(*site.memory, small, nullptr);
    device.writes(nullptr, last, small, "write of the last");
    device.free(*site.memory, last);
}

void trim_while_work_is_pending(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, large, device.one);
    device.writes(device.one, block, large);
    device.free(*site.memory, block);
    (void)site.memory->trim();
    void* const other = device.memory(*site.memory, large, device.two);
    device.writes(device.two, other, large, "write of another stream");
    (void)site.memory->trim();
    device.free(*site.memory, other);
    (void)site.memory->trim();
}

void trim_beside_a_use(SmallDevice& device, Site& site) {
    void* const kept = device.memory(*site.memory, large / 2, device.one);
    void* const block = device.memory(*site.memory, large / 2, device.one);
    device.writes(device.one, kept, large / 2, "write of the kept block");
    device.writes(device.one, block, large / 2);
    device.orders(device.one, device.two);
    device.reads(device.two, block, large / 2);
    site.memory->record_use(block, device.two);
    device.free(*site.memory, block);
    (void)site.memory->trim();
    device.reads(device.one, kept, large / 2, "read of the kept block");
    device.free(*site.memory, kept);
    (void)site.memory->trim();
}

void take_the_memory_of_another_stream(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, small_device_bytes, device.one);
    device.writes(device.one, block, small_device_bytes);
    device.free(*site.memory, block);
    void* const other = device.memory(*site.memory, small_device_bytes, device.two);
    device.writes(device.two, other, small_device_bytes, "write of another stream");
    device.free(*site.memory, other);
    void* const again = device.memory(*site.memory, small_device_bytes / 2, device.one);
    device.writes(device.one, again, small_device_bytes / 2, "second write");
    device.free(*site.memory, again);
}

void take_memory_that_another_stream_uses(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, small_device_bytes, device.one);
    device.writes(device.one, block, small_device_bytes);
    device.orders(device.one, device.two);
    device.reads(device.two, block, small_device_bytes);
    site.memory->record_use(block, device.two);
    device.free(*site.memory, block);
    void* const next = device.memory(*site.memory, small_device_bytes, device.one);
    device.writes(device.one, next, small_device_bytes, "write of the next");
    device.free(*site.memory, next);
}

void end_a_stream(SmallDevice& device, Site& site) {
    void* const free = device.memory(*site.memory, small, device.two);
    void* const kept = device.memory(*site.memory, small, device.two);
    device.writes(device.two, free, small);
    device.writes(device.two, kept, small, "write of the kept block");
    device.writes(device.one, device.memory(*site.memory, small, device.one), small, "other work");
    device.free(*site.memory, free);
    site.memory->end_stream(device.two);
    void* const next = device.memory(*site.memory, small, nullptr);
    device.writes(nullptr, next, small, "write of the default stream");
    SmallDevice::expect_ok(device.backend.destroy_stream(0, device.two));
    device.free(*site.memory, kept);
    void* const last = device.memory(*site.memory, small, nullptr);
    device.writes(nullptr, last, small, "second write of the default stream");
}

void launch_a_graph_twice(SmallDevice& device, Site& site) {
    site.caching.reserve_for_capture(granule);
    SmallDevice::expect_ok(device.backend.begin_capture(0, device.one));
    CaptureState state;
    SmallDevice::expect_ok(device.backend.capture_state(0, device.one, state));
    void* const block = device.memory(*site.memory, small, device.one);
    device.writes(device.one, block, small, "captured write");
    device.free(*site.memory, block);
    GraphHandle graph = nullptr;
    SmallDevice::expect_ok(device.backend.end_capture(0, device.one, &graph));
    site.memory->capture_ended(state.id);
    SmallDevice::expect_ok(device.backend.launch_graph(0, graph, device.one));
    void* const other = device.memory(*site.memory, small, device.one);
    device.writes(device.one, other, small, "write beside the graph");
    (void)site.memory->trim();
    SmallDevice::expect_ok(device.backend.launch_graph(0, graph, device.two));
    SmallDevice::expect_ok(device.backend.destroy_graph(0, graph));
    site.memory->release_capture(state.id);
    void* const next = device.memory(*site.memory, small, device.one);
    device.writes(device.one, next, small, "write after the graph");
}

void free_during_the_capture_of_its_user(SmallDevice& device, Site& site) {
    void* const block = device.memory(*site.memory, small, device.one);
    device.writes(device.one, block, small);
    device.orders(device.one, device.two);
    device.reads(device.two, block, small);
    site.memory->record_use(block, device.two);
    SmallDevice::expect_ok(device.backend.begin_capture(0, device.two));
    device.free(*site.memory, block);
    GraphHandle graph = nullptr;
    SmallDevice::expect_ok(device.backend.end_capture(0, device.two, &graph));
    SmallDevice::expect_ok(device.backend.destroy_graph(0, graph));
    for (int i = 0; i < 2; ++i) {
        void* const next = device.memory(*site.memory, small, device.one);
        device.writes(device.one, next, small, "write of the next");
        device.free(*site.memory, next);
    }
}

// Pinned memory ----------------------------------------------------------------------------------

void* staged(SmallDevice& device, Site& site, StreamHandle stream, const char* label) {
    void* const block = device.memory(*site.pinned, small, stream);
    device.backend.host_write(block, small, label);
    std::memset(block, 1, small);
    return block;
}

void free_pinned_while_it_is_copied(SmallDevice& device, Site& site) {
    void* const to = device.memory(*site.memory, small, device.one);
    for (int i = 0; i < 3; ++i) {
        void* const from = staged(device, site, device.one, "the host's write");
        device.uploads(device.one, to, from, small);
        device.free(*site.pinned, from);
    }
}

void free_pinned_while_two_streams_copy(SmallDevice& device, Site& site) {
    void* const from = staged(device, site, nullptr, "the host's write");
    for (const StreamHandle stream : {device.one, device.two}) {
        device.uploads(stream, device.memory(*site.memory, small, stream), from, small);
        site.pinned->record_use(from, stream);
    }
    device.free(*site.pinned, from);
    void* const next = staged(device, site, nullptr, "the host's write of the next");
    (void)site.pinned->trim();
    device.free(*site.pinned, next);
    (void)staged(device, site, nullptr, "the host's last write");
}

void free_pinned_while_it_is_written(SmallDevice& device, Site& site) {
    void* const from = device.memory(*site.memory, small, device.one);
    device.writes(device.one, from, small);
    void* const to = device.memory(*site.pinned, small, nullptr);
    device.downloads(device.one, to, from, small);
    site.pinned->record_use(to, device.one);
    device.free(*site.pinned, to);
    for (int i = 0; i < 2; ++i) {
        device.free(*site.pinned, staged(device, site, nullptr, "the host's write"));
        (void)site.pinned->trim();
    }
}

void end_a_stream_that_copies(SmallDevice& device, Site& site) {
    void* const to = device.memory(*site.memory, small, device.two);
    void* const from = staged(device, site, device.two, "the host's write");
    device.uploads(device.two, to, from, small);
    device.writes(device.one, device.memory(*site.memory, small, device.one), small, "other work");
    device.free(*site.pinned, from);
    site.pinned->end_stream(device.two);
    (void)staged(device, site, device.one, "the host's write of the next");
}

constexpr SmallProgram all[] = {
    {"reuse_on_its_stream", reuse_on_its_stream},
    {"free_while_another_stream_uses", free_while_another_stream_uses},
    {"free_while_two_streams_use", free_while_two_streams_use},
    {"trim_while_work_is_pending", trim_while_work_is_pending},
    {"trim_beside_a_use", trim_beside_a_use},
    {"take_the_memory_of_another_stream", take_the_memory_of_another_stream},
    {"take_memory_that_another_stream_uses", take_memory_that_another_stream_uses},
    {"end_a_stream", end_a_stream},
    {"launch_a_graph_twice", launch_a_graph_twice},
    {"free_during_the_capture_of_its_user", free_during_the_capture_of_its_user},
    {"free_pinned_while_it_is_copied", free_pinned_while_it_is_copied},
    {"free_pinned_while_two_streams_copy", free_pinned_while_two_streams_copy},
    {"free_pinned_while_it_is_written", free_pinned_while_it_is_written},
    {"end_a_stream_that_copies", end_a_stream_that_copies},
};

}  // namespace

std::span<const SmallProgram> small_programs() noexcept {
    return all;
}

const SmallProgram& small_program(std::string_view name) noexcept {
    return *std::find_if(std::begin(all), std::end(all),
                         [&](const SmallProgram& program) { return program.name == name; });
}

}  // namespace tensorpool::stress::devices
