#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/pinned_allocator.hpp>

namespace tensorpool::stress::devices {

/// The interface of an allocator under test, which a faulty one can replace.
class Subject {
public:
    Subject() = default;
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;
    virtual ~Subject() = default;

    /// Returns nullptr if the allocation fails.
    virtual void* allocate(std::size_t bytes, StreamHandle stream) = 0;
    virtual void deallocate(void* block) = 0;
    virtual void record_use(void* block, StreamHandle stream) = 0;
    virtual std::size_t usable_size(const void* block) const = 0;
    virtual DeviceStatistics statistics() const = 0;
    virtual std::size_t trim() = 0;
    virtual void end_stream(StreamHandle stream) = 0;
    /// The capture has ended, but its graph still exists.
    virtual void capture_ended(std::uint64_t id) = 0;
    /// The graph was destroyed.
    virtual void release_capture(std::uint64_t id) = 0;
};

template <class Allocator>
class SubjectOf : public Subject {
public:
    explicit SubjectOf(Allocator& allocator) noexcept : allocator_(allocator) {}

    void* allocate(std::size_t bytes, StreamHandle stream) override {
        return allocator_.try_allocate(bytes, stream);
    }
    void deallocate(void* block) override { allocator_.deallocate(block); }
    void record_use(void* block, StreamHandle stream) override {
        allocator_.record_use(block, stream);
    }
    std::size_t usable_size(const void* block) const override {
        return allocator_.usable_size(block);
    }
    DeviceStatistics statistics() const override { return allocator_.statistics(); }
    std::size_t trim() override { return allocator_.trim(); }
    void end_stream(StreamHandle stream) override { allocator_.end_stream(stream); }
    void capture_ended(std::uint64_t) override {}
    void release_capture(std::uint64_t id) override {
        if constexpr (requires { allocator_.release_capture(id); }) allocator_.release_capture(id);
    }

private:
    Allocator& allocator_;
};

/// Forwards every call. Derived classes override single functions with faults.
class ForwardingSubject : public Subject {
public:
    ForwardingSubject(std::unique_ptr<Subject> inner, Backend& backend, int device) noexcept
        : inner_(std::move(inner)), backend_(backend), device_(device) {}

    void* allocate(std::size_t bytes, StreamHandle stream) override {
        return inner_->allocate(bytes, stream);
    }
    void deallocate(void* block) override { inner_->deallocate(block); }
    void record_use(void* block, StreamHandle stream) override {
        inner_->record_use(block, stream);
    }
    std::size_t usable_size(const void* block) const override { return inner_->usable_size(block); }
    DeviceStatistics statistics() const override { return inner_->statistics(); }
    std::size_t trim() override { return inner_->trim(); }
    void end_stream(StreamHandle stream) override { inner_->end_stream(stream); }
    void capture_ended(std::uint64_t id) override { inner_->capture_ended(id); }
    void release_capture(std::uint64_t id) override { inner_->release_capture(id); }

protected:
    Subject& inner() const noexcept { return *inner_; }
    /// Sends the note that an allocator which acts like this would send.
    void note(BlockNote::Kind kind, void* block, std::size_t bytes, StreamHandle stream) {
        backend_.note_block({kind, device_, block, bytes, stream});
    }

private:
    std::unique_ptr<Subject> inner_;
    Backend& backend_;
    int device_;
};

}  // namespace tensorpool::stress::devices
