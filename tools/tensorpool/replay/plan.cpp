#include "replay/plan.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

/// The beginning of the file. The threads, steps, offsets and stages follow in this order.
struct Header {
    std::uint64_t threads = 0;
    std::uint64_t steps = 0;
    std::uint64_t stages = 0;
    std::uint64_t offsets = 0;
    std::uint64_t offsets_bytes = 0;
    std::uint64_t slots = 0;
};

[[noreturn]] void fail(int error) {
    throw CommandError(finding, fmt::format("the plan of the replay cannot be written to memory: "
                                            "{}",
                                            std::strerror(error)));
}

template <class Item>
void write(const Descriptor& file, std::span<const Item> items) {
    if (!write_all(file, std::as_bytes(items))) fail(errno);
}

template <class Item>
std::span<const Item> take(const std::byte*& at, std::uint64_t count) noexcept {
    const auto* const first = reinterpret_cast<const Item*>(at);
    at += count * sizeof(Item);
    return {first, static_cast<std::size_t>(count)};
}

}  // namespace

Descriptor file_of(const Plan& plan) {
    Descriptor file(memfd_create("replay-plan", MFD_CLOEXEC));
    if (!file) fail(errno);
    const Header header = {plan.threads.size(), plan.steps.size(),  plan.stages.size(),
                           plan.offsets.size(), plan.offsets_bytes, plan.slots};
    write(file, std::span<const Header>(&header, 1));
    write(file, std::span<const PlannedThread>(plan.threads));
    write(file, std::span<const Step>(plan.steps));
    write(file, std::span<const std::uint64_t>(plan.offsets));
    write(file, std::span<const std::uint32_t>(plan.stages));
    return file;
}

bool map_plan(int descriptor, PlanView& plan) noexcept {
    struct stat status = {};
    if (fstat(descriptor, &status) != 0) return false;
    const auto bytes = static_cast<std::size_t>(status.st_size);
    void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (mapped == MAP_FAILED) return false;
    const auto* at = static_cast<const std::byte*>(mapped);
    const Header header = take<Header>(at, 1).front();
    plan.threads = take<PlannedThread>(at, header.threads);
    plan.steps = take<Step>(at, header.steps);
    plan.offsets = take<std::uint64_t>(at, header.offsets);
    plan.stages = take<std::uint32_t>(at, header.stages);
    plan.offsets_bytes = header.offsets_bytes;
    plan.slots = static_cast<std::uint32_t>(header.slots);
    return true;
}

}  // namespace tensorpool::command::replay
