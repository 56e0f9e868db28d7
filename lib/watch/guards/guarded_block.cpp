#include "watch/guards/guarded_block.hpp"

#include <algorithm>

#include "platform/platform.hpp"
#include "platform/stacks/call_stack.hpp"

namespace tensorpool::watch {
namespace {

constexpr unsigned char fill = 0xA5;
// The bytes before the block that are checked. Writes further down reach the inaccessible page or
// stay unnoticed.
constexpr std::size_t max_front = 64;

}  // namespace

void GuardedStack::capture() noexcept {
    thread = platform::current_thread_id();
    count = static_cast<std::uint32_t>(platform::capture_stack(frames.data(), frames.size()));
}

std::span<unsigned char> GuardedBlock::front(char* first_page) const noexcept {
    const std::size_t bytes = std::min(static_cast<std::size_t>(begin - first_page), max_front);
    return {reinterpret_cast<unsigned char*>(begin) - bytes, bytes};
}

std::span<unsigned char> GuardedBlock::slack(char* first_page) const noexcept {
    char* const end = first_page + page_bytes_in_use();
    return {reinterpret_cast<unsigned char*>(begin + requested),
            static_cast<std::size_t>(end - begin) - requested};
}

void GuardedBlock::fill_slack(char* first_page) const noexcept {
    std::ranges::fill(front(first_page), fill);
    std::ranges::fill(slack(first_page), fill);
}

const void* GuardedBlock::find_damage(char* first_page) const noexcept {
    for (const std::span<unsigned char> bytes : {front(first_page), slack(first_page)}) {
        const auto damaged =
            std::ranges::find_if(bytes, [](unsigned char byte) { return byte != fill; });
        if (damaged != bytes.end()) return &*damaged;
    }
    return nullptr;
}

}  // namespace tensorpool::watch
