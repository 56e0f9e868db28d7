#include "contracts/backend_contract.hpp"

#include <ranges>

namespace tensorpool::testing {

void BackendContract::SetUp() {
    MadeBackend made = GetParam().make();
    if (made.backend == nullptr) GTEST_SKIP() << made.skip_reason;
    backend_ = std::move(made.backend);
    ASSERT_GT(backend_->device_count(), 0);
}

void BackendContract::TearDown() {
    if (backend_ == nullptr) return;
    EXPECT_EQ(backend().synchronize_device(device), DeviceStatus::ok) << backend().last_error();
    for (const auto& step : std::views::reverse(steps_)) step();
    steps_.clear();
}

StreamHandle BackendContract::make_stream() {
    StreamHandle stream = nullptr;
    EXPECT_EQ(backend().create_stream(device, &stream), DeviceStatus::ok) << backend().last_error();
    EXPECT_NE(stream, nullptr);
    afterwards([this, stream] {
        EXPECT_EQ(backend().destroy_stream(device, stream), DeviceStatus::ok)
            << backend().last_error();
    });
    return stream;
}

EventHandle BackendContract::make_event(EventFlags flags) {
    EventHandle event = nullptr;
    EXPECT_EQ(backend().create_event(device, flags, &event), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_NE(event, nullptr);
    afterwards([this, event] {
        EXPECT_EQ(backend().destroy_event(device, event), DeviceStatus::ok)
            << backend().last_error();
    });
    return event;
}

void* BackendContract::make_memory(std::size_t bytes, StorageKind kind) {
    void* memory = nullptr;
    EXPECT_EQ(backend().allocate(device, bytes, kind, &memory), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_NE(memory, nullptr);
    afterwards([this, memory, bytes, kind] {
        EXPECT_EQ(backend().deallocate(device, memory, bytes, kind), DeviceStatus::ok)
            << backend().last_error();
    });
    return memory;
}

unsigned char* BackendContract::make_pinned(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(backend().allocate_pinned(device, bytes, &memory), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_NE(memory, nullptr);
    afterwards([this, memory, bytes] {
        EXPECT_EQ(backend().deallocate_pinned(device, memory, bytes), DeviceStatus::ok)
            << backend().last_error();
    });
    return static_cast<unsigned char*>(memory);
}

GraphHandle BackendContract::end_capture(StreamHandle stream) {
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend().end_capture(device, stream, &graph), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_NE(graph, nullptr);
    afterwards([this, graph] {
        EXPECT_EQ(backend().destroy_graph(device, graph), DeviceStatus::ok)
            << backend().last_error();
    });
    return graph;
}

CaptureState BackendContract::state_of(StreamHandle stream) {
    CaptureState state;
    EXPECT_EQ(backend().capture_state(device, stream, state), DeviceStatus::ok)
        << backend().last_error();
    return state;
}

void BackendContract::write(void* memory, const Bytes& bytes) {
    EXPECT_EQ(backend().copy(device, CopyKind::host_to_device, memory, bytes.data(), bytes.size()),
              DeviceStatus::ok)
        << backend().last_error();
}

BackendContract::Bytes BackendContract::read(const void* memory, std::size_t bytes) {
    Bytes found(bytes);
    EXPECT_EQ(backend().copy(device, CopyKind::device_to_host, found.data(), memory, bytes),
              DeviceStatus::ok)
        << backend().last_error();
    return found;
}

BackendContract::Bytes BackendContract::pattern(std::size_t bytes, unsigned seed) {
    Bytes made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<unsigned char>((i + seed) * 167 + (i >> 8));
    }
    return made;
}

DeviceStatus BackendContract::note(StreamHandle stream, int number) {
    pending_.push_back(std::make_unique<std::pair<Notes*, int>>(notes_.get(), number));
    return backend().launch_host_function(
        device, stream,
        [](void* argument) {
            const auto& [notes, what] = *static_cast<std::pair<Notes*, int>*>(argument);
            notes->add(what);
        },
        pending_.back().get());
}

void BackendContract::expect_refused(DeviceStatus found, DeviceStatus expected) {
    EXPECT_EQ(found, expected) << backend().last_error();
    EXPECT_NE(backend().last_error(), "");
}

}  // namespace tensorpool::testing
