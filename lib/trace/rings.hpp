#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "platform/platform.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// The rings of one recording, and who has which. Thread-safe.
class Rings {
public:
    constexpr Rings() noexcept = default;
    Rings(const Rings&) = delete;
    Rings& operator=(const Rings&) = delete;

    enum class Sharing : bool { no, yes };
    /// Memory for a recording that begins. That of the last one stays where threads may still write
    /// into it. False when the system has none.
    [[nodiscard]] bool make(Sharing sharing, const TraceProcess& process) noexcept;
    /// Says that nothing more will come, and gives the descriptor and the memory back. Its reader
    /// still has them.
    void end() noexcept;
    /// In the child of a fork, which has none of it.
    void forget() noexcept;

    struct Taken {
        std::size_t ring;
        RingHead* head;  // nullptr: there was none
        TraceEntry* entries;
    };
    /// A ring for the calling thread, its pages got.
    Taken take() noexcept;
    /// A thread that found none.
    void count_left_out() noexcept;
    void give_back(std::size_t ring) noexcept;

    void name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept;
    /// The number of a module, from 1; 0 when there is no place for it.
    std::uint64_t number_of_module(std::string_view path) noexcept;

    /// There is memory.
    RingsHeader& header() const noexcept { return *at<RingsHeader>(0); }
    RingHead& head(std::size_t ring) const noexcept {
        return *at<RingHead>(heads_offset + ring * sizeof(RingHead));
    }
    TraceEntry* entries(std::size_t ring) const noexcept {
        return at<TraceEntry>(rings_offset + ring * ring_bytes);
    }
    TraceName* names() const noexcept { return at<TraceName>(names_offset); }
    TraceModule* modules() const noexcept { return at<TraceModule>(modules_offset); }
    bool is_made() const noexcept { return memory_.address != nullptr; }
    int file() const noexcept { return memory_.file; }

    /// Around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    template <class T>
    T* at(std::size_t offset) const noexcept {
        return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.address) + offset);
    }

    platform::SharedMemory memory_;
    std::mutex mutex_;
    // Below: under mutex_. A bit for each ring that is a thread's.
    std::uint64_t taken_[ring_count / 64] = {};
};

}  // namespace tensorpool::trace
