#include "stress/cuda/content.hpp"

#include <algorithm>
#include <cstring>

namespace tensorpool::stress::cuda {
namespace {

/// Returns the offset of the first other byte, or `bytes`.
std::size_t first_other(const unsigned char* content, std::size_t bytes, std::uint8_t byte) {
    if (content[0] == byte && std::memcmp(content, content + 1, bytes - 1) == 0) return bytes;
    const auto* const end = content + bytes;
    return static_cast<std::size_t>(
        std::find_if(content, end, [byte](unsigned char found) { return found != byte; }) -
        content);
}

}  // namespace

Content::Content(Backend& backend) : backend_(backend) {
    expect_ok(backend.allocate_pinned(card, buffer_bytes_, &buffer_), "allocate_pinned");
    expect_ok(backend.allocate(card, busy_bytes_, StorageKind::private_storage, &busy_),
              "allocate");
    expect_ok(backend.create_event(card, EventFlags::none, &event_), "create_event");
}

Content::~Content() {
    expect_ok(backend_.synchronize_device(card), "synchronize_device");
    expect_ok(backend_.destroy_event(card, event_), "destroy_event");
    expect_ok(backend_.deallocate(card, busy_, busy_bytes_, StorageKind::private_storage),
              "deallocate");
    expect_ok(backend_.deallocate_pinned(card, buffer_, buffer_bytes_), "deallocate_pinned");
}

void Content::fill(void* memory, std::size_t bytes, std::uint8_t byte, StreamHandle stream) {
    expect_ok(backend_.fill_async(card, memory, byte, bytes, stream), "fill_async");
}

void Content::expect(const void* memory, std::size_t bytes, std::uint8_t byte,
                     StreamHandle stream) {
    const auto* from = static_cast<const unsigned char*>(memory);
    while (bytes != 0) {
        if (used_ == buffer_bytes_) compare();
        const std::size_t piece = std::min(bytes, buffer_bytes_ - used_);
        expect_ok(
            backend_.copy_async(card, CopyKind::device_to_host,
                                static_cast<unsigned char*>(buffer_) + used_, from, piece, stream),
            "copy_async");
        copies_.push_back({used_, piece, byte});
        used_ += piece;
        from += piece;
        bytes -= piece;
    }
}

void Content::compare() {
    expect_ok(backend_.synchronize_device(card), "synchronize_device");
    for (const Copy& copy : copies_) {
        const auto* const content = static_cast<const unsigned char*>(buffer_) + copy.offset;
        const std::size_t other = first_other(content, copy.bytes, copy.byte);
        if (other == copy.bytes) continue;
        ADD_FAILURE() << "byte " << other << " of " << copy.bytes << " is "
                      << unsigned{content[other]} << ", expected " << unsigned{copy.byte};
        break;
    }
    copies_.clear();
    used_ = 0;
}

void Content::order(StreamHandle first, StreamHandle later) {
    expect_ok(backend_.record_event(card, event_, first), "record_event");
    expect_ok(backend_.wait_event(card, later, event_), "wait_event");
}

void Content::keep_busy(StreamHandle stream) {
    for (int i = 0; i < 4; ++i) fill(busy_, busy_bytes_, 0, stream);
}

void Content::expect_ok(DeviceStatus status, const char* call) {
    EXPECT_EQ(status, DeviceStatus::ok) << call << ": " << backend_.last_error();
}

}  // namespace tensorpool::stress::cuda
