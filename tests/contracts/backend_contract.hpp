#pragma once

/// The contract of `Backend`, written once for all backends, after the comments in
/// device/backend.hpp. The tests are in backend_*_contract.cpp beside this file. A backend
/// instantiates BackendContract, and those of the derived fixtures whose ability it has:
///
///     MadeBackend make() { return {std::make_unique<HostBackend>(), ""}; }
///     const auto host = ::testing::Values(BackendFactory{"host", make});
///     INSTANTIATE_TEST_SUITE_P(Host, BackendContract, host, name_of);
///     INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutCapture, host, name_of);
///
/// Suites that a backend does not instantiate have no tests for it, rather than skipped ones.
///
/// Work is only host functions, copies and fills, so that backends need no kernels. Some tests use
/// several threads: all of them run with the thread sanitizer.

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

inline void PrintTo(DeviceStatus status, std::ostream* out) {
    *out << to_string(status);
}

namespace testing {

/// A backend with at least one device, or the reason why there is none; its tests are then skipped.
struct MadeBackend {
    std::unique_ptr<Backend> backend;
    std::string skip_reason;
};

struct BackendFactory {
    const char* name;
    MadeBackend (*make)();
    /// Whether the backend recognizes invalid handles. If not, tests do not use such handles, as
    /// they may end the process.
    bool knows_handles = true;
    /// Whether the abilities depend on the machine. Tests of a missing ability are skipped then;
    /// for other backends they fail.
    bool is_of_machine = false;
};

inline std::string name_of(const ::testing::TestParamInfo<BackendFactory>& info) {
    return info.param.name;
}
inline void PrintTo(const BackendFactory& factory, std::ostream* out) {
    *out << factory.name;
}

/// The numbers that host functions noted, in the order in which they ran.
class Notes {
public:
    void add(int number) {
        const std::lock_guard guard(mutex_);
        numbers_.push_back(number);
    }
    std::vector<int> all() const {
        const std::lock_guard guard(mutex_);
        return numbers_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<int> numbers_;
};

/// Blocks a stream from `close` until `open` or the destructor. A backend may run the host
/// functions of several streams one after another. So while a gate is closed, no test waits for
/// another host function, and none allocates or frees.
class Gate {
public:
    ~Gate() {
        open();
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return inside_ == 0; });
    }
    Gate() = default;
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    DeviceStatus close(Backend& backend, int device, StreamHandle stream) {
        {
            const std::lock_guard guard(mutex_);
            ++inside_;
        }
        const DeviceStatus status = backend.launch_host_function(device, stream, pass, this);
        if (status != DeviceStatus::ok) leave();
        return status;
    }
    void open() {
        const std::lock_guard guard(mutex_);
        is_open_ = true;
        changed_.notify_all();
    }

private:
    static void pass(void* gate) {
        auto& self = *static_cast<Gate*>(gate);
        {
            std::unique_lock lock(self.mutex_);
            self.changed_.wait(lock, [&] { return self.is_open_; });
        }
        self.leave();
    }
    void leave() {
        const std::lock_guard guard(mutex_);
        --inside_;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_open_ = false;
    int inside_ = 0;
};

class BackendContract : public ::testing::TestWithParam<BackendFactory> {
protected:
    using Bytes = std::vector<unsigned char>;
    static constexpr int device = 0;
    static constexpr std::size_t kib = 1024;
    static constexpr std::size_t mib = 1024 * kib;

    void SetUp() override;
    /// Waits for the device and destroys what the test created, in reverse order.
    void TearDown() override;

    Backend& backend() { return *backend_; }
    DeviceAbilities abilities() { return backend().abilities(device); }
    bool knows_handles() const { return GetParam().knows_handles; }

    // Create an object that is destroyed after the test. A failure fails the test.
    StreamHandle make_stream();
    EventHandle make_event(EventFlags flags = EventFlags::none);
    void* make_memory(std::size_t bytes, StorageKind kind = StorageKind::private_storage);
    unsigned char* make_pinned(std::size_t bytes);
    /// Ends the stream's capture and returns its graph, which is destroyed after the test.
    GraphHandle end_capture(StreamHandle stream);
    CaptureState state_of(StreamHandle stream);
    /// Adds a step to be run after the test, before objects created earlier are destroyed.
    void afterwards(std::function<void()> step) { steps_.push_back(std::move(step)); }

    void write(void* memory, const Bytes& bytes);
    Bytes read(const void* memory, std::size_t bytes);
    /// Returns bytes of which no two neighbours are equal.
    static Bytes pattern(std::size_t bytes, unsigned seed = 1);

    /// Submits a host function that notes the number.
    DeviceStatus note(StreamHandle stream, int number);
    std::vector<int> noted() const { return notes_->all(); }

    /// Checks that the last call returned `expected` and left an error text.
    void expect_refused(DeviceStatus found, DeviceStatus expected = DeviceStatus::invalid_argument);

    template <class Handle>
    static Handle nonsense_handle() {
        static int something = 0;
        return reinterpret_cast<Handle>(&something);
    }

private:
    std::unique_ptr<Notes> notes_ = std::make_unique<Notes>();
    std::vector<std::unique_ptr<std::pair<Notes*, int>>> pending_;
    std::unique_ptr<Backend> backend_;  // its work uses the members above
    std::vector<std::function<void()>> steps_;
};

/// The part of the contract for backends whose abilities satisfy `has`.
template <bool (*has)(const DeviceAbilities&)>
class BackendOfAbility : public BackendContract {
protected:
    void SetUp() override {
        BackendContract::SetUp();
        if (IsSkipped() || HasFatalFailure() || has(abilities())) return;
        if (GetParam().is_of_machine) GTEST_SKIP() << "this machine's device differs";
        FAIL() << "the backend's abilities do not match its tests";
    }
};

inline bool has_virtual_memory(const DeviceAbilities& of) {
    return of.virtual_memory;
}
inline bool lacks_virtual_memory(const DeviceAbilities& of) {
    return !of.virtual_memory;
}
inline bool has_exportable_memory(const DeviceAbilities& of) {
    return of.exportable_memory;
}
inline bool lacks_exportable_memory(const DeviceAbilities& of) {
    return !of.exportable_memory;
}
inline bool has_capture(const DeviceAbilities& of) {
    return of.graph_capture;
}
inline bool lacks_capture(const DeviceAbilities& of) {
    return !of.graph_capture;
}
inline bool has_stream_order(const DeviceAbilities& of) {
    return of.stream_ordered_allocation;
}

inline bool has_managed_advice(const DeviceAbilities& of) {
    return of.managed_advice;
}

/// Backends whose host functions may wait for later steps of the test. Tests of states during work
/// need this; tests of order only compare the notes afterwards.
class BackendWhereFunctionsMayBlock : public BackendContract {};
/// Backends that reject invalid handles.
class BackendThatKnowsHandles : public BackendContract {};
class BackendWithVirtualMemory : public BackendOfAbility<has_virtual_memory> {};
class BackendWithoutVirtualMemory : public BackendOfAbility<lacks_virtual_memory> {};
class BackendWithExportableMemory : public BackendOfAbility<has_exportable_memory> {};
class BackendWithoutExportableMemory : public BackendOfAbility<lacks_exportable_memory> {};
class BackendWithCapture : public BackendOfAbility<has_capture> {};
class BackendWithCaptureThatKnowsHandles : public BackendOfAbility<has_capture> {};
class BackendWithoutCapture : public BackendOfAbility<lacks_capture> {};
class BackendWithStreamOrder : public BackendOfAbility<has_stream_order> {};
class BackendWithManagedAdvice : public BackendOfAbility<has_managed_advice> {};

}  // namespace testing
}  // namespace tensorpool
