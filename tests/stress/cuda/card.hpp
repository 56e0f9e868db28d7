#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/driver_api.hpp"

namespace tensorpool::stress::cuda {

/// The options of the program.
struct CommandLine {
    std::string library;  ///< the driver, by name or path
    bool quick = false;   ///< little memory and few steps, for the fake driver
};
CommandLine& command_line() noexcept;
/// Returns the value for the form of the program that runs.
template <class Value>
Value quick_or_long(Value quick, Value slow) {
    return command_line().quick ? quick : slow;
}

inline constexpr std::size_t mib = std::size_t{1} << 20;
/// The card under test.
inline constexpr int card = 0;

/// Returns the default stream of the calling thread.
inline StreamHandle stream_of_thread() noexcept {
    return reinterpret_cast<StreamHandle>(device::cuda::per_thread_stream_handle);
}

/// A program that uses the driver beside the allocators, as PyTorch does: streams and graphs are
/// its own, and its captures are in global mode. Skipped if there is no card.
class OnCard : public ::testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    StreamHandle make_stream();
    /// Destroys a stream without `end_stream`.
    void destroy(StreamHandle stream);
    void begin_capture(StreamHandle stream);
    /// Ends a capture and instantiates its graph. Returns nullptr, with a failure, for an invalid
    /// capture.
    device::cuda::GraphExec end_capture(StreamHandle stream);
    void launch(device::cuda::GraphExec graph, StreamHandle stream);
    void destroy(device::cuda::GraphExec graph);

    DeviceMemoryInfo memory_info();
    /// Returns how many functions of the driver were called so far; none for a real driver, which
    /// does not count.
    std::optional<unsigned long long> driver_calls() const;
    CudaBackend& backend() noexcept { return *backend_; }
    const std::shared_ptr<CudaBackend>& shared_backend() const noexcept { return backend_; }

private:
    device::cuda::DriverApi driver_;
    std::shared_ptr<CudaBackend> backend_;
    device::cuda::Context context_ = nullptr;
    std::set<StreamHandle> streams_;
};

/// Which slabs an allocator has.
enum class Slabs : std::uint8_t { plain, expandable };

/// A caching allocator with each kind of slabs.
class AllocatorOnCard : public OnCard, public ::testing::WithParamInterface<Slabs> {
protected:
    void SetUp() override;
    void TearDown() override;

    CachingOptions options() const;
    CachingAllocator& allocator() noexcept { return *allocator_; }
    /// Replaces the allocator by one with these options, or by none.
    void replace_allocator(std::optional<CachingOptions> options);

private:
    std::unique_ptr<CachingAllocator> allocator_;
};

}  // namespace tensorpool::stress::cuda
