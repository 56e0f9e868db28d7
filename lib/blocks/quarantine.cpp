#include "blocks/quarantine.hpp"

#include "platform/platform.hpp"

namespace tensorpool::blocks {

Quarantine::~Quarantine() {
    if (queue_ != nullptr) platform::unmap(queue_, max_blocks * sizeof(Block));
}

bool Quarantine::make_queue() noexcept {
    if (queue_ != nullptr) [[likely]]
        return true;
    void* const memory = platform::map(max_blocks * sizeof(Block), platform::page_bytes());
    queue_ = static_cast<Block*>(memory);
    return queue_ != nullptr;
}

Quarantine::Block Quarantine::pop() noexcept {
    const Block block = queue_[begin_++ % max_blocks];
    bytes_ -= block.bytes;
    return block;
}

// The queue always has room: its limit is reached, and some blocks are taken, when it is full.
unsigned Quarantine::exchange(Block added, Block* taken, unsigned max_count) noexcept {
    taken[0] = added;
    if (added.bytes > max_bytes_) return 1;
    const std::lock_guard guard(mutex_);
    if (!make_queue()) return 1;
    queue_[end_++ % max_blocks] = added;
    bytes_ += added.bytes;
    unsigned count = 0;
    if (holds_more_than(max_bytes_, max_blocks - 1)) {
        const std::size_t kept_bytes = max_bytes_ / 16 * 15;
        while (count != max_count && holds_more_than(kept_bytes, max_blocks / 16 * 15)) {
            taken[count++] = pop();
        }
    }
    publish();
    return count;
}

unsigned Quarantine::take(Block* blocks, unsigned max_count) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count && begin_ != end_) blocks[count++] = pop();
    if (count != 0) publish();
    return count;
}

}  // namespace tensorpool::blocks
