#pragma once

#include <memory>

#include "stress/devices/live_blocks.hpp"
#include "stress/devices/planted_fault.hpp"
#include "stress/devices/setting.hpp"
#include "stress/devices/subject.hpp"

namespace tensorpool::stress::devices {

/// The allocators of one device, and the blocks that the program holds of each.
class Site {
    // Declared first, because the allocators call them until they are destroyed.
    std::unique_ptr<Backend> faulty_;
    std::unique_ptr<Backend> faulty_for_pinned_;

public:
    Site(Backend& backend, int device, const Setting& setting, const PlantedFault* fault)
        : faulty_(backend_with(fault, PlantedFault::Part::device_memory, backend)),
          faulty_for_pinned_(backend_with(fault, PlantedFault::Part::pinned_memory, backend)),
          caching(faulty_ ? *faulty_ : backend, device, setting.caching),
          pinned_allocator(faulty_for_pinned_ ? *faulty_for_pinned_ : backend, device,
                           setting.pinned),
          memory(std::make_unique<SubjectOf<CachingAllocator>>(caching)),
          pinned(std::make_unique<SubjectOf<PinnedAllocator>>(pinned_allocator)) {
        if (fault == nullptr || fault->subject == nullptr) return;
        auto& subject = fault->part == PlantedFault::Part::device_memory ? memory : pinned;
        subject = fault->subject(std::move(subject), backend, device);
    }

    CachingAllocator caching;
    PinnedAllocator pinned_allocator;
    std::unique_ptr<Subject> memory;
    std::unique_ptr<Subject> pinned;
    LiveBlocks blocks;
    LiveBlocks pinned_blocks;
    Streams pinned_streams;  ///< streams reported to the allocator of pinned memory
    bool has_callback = false;

private:
    static std::unique_ptr<Backend> backend_with(const PlantedFault* fault, PlantedFault::Part part,
                                                 Backend& backend) {
        const bool its = fault != nullptr && fault->backend != nullptr && fault->part == part;
        return its ? fault->backend(backend) : nullptr;
    }
};

}  // namespace tensorpool::stress::devices
