#include "watch/profile/site_table.hpp"

#include <algorithm>

#include "platform/stacks/call_stack.hpp"
#include "platform/stacks/python_frames.hpp"
#include "statistics/segment/name.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::watch {

using statistics::segment;

namespace {

// FNV-1a (Fowler, Noll, Vo) over words, and a last step that spreads the bits.
class Hash {
public:
    void add(std::uint64_t word) noexcept {
        hash_ = (hash_ ^ word) * 0x100000001b3;
        hash_ ^= hash_ >> 32;
    }
    std::uint64_t get() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::uint64_t hash_of(std::span<const platform::ProgramFrame> frames) noexcept {
    Hash hash;
    for (const platform::ProgramFrame& frame : frames) {
        hash.add(frame.address);
        if (frame.python_code == nullptr) continue;
        hash.add(platform::identify_python_code(frame.python_code));
        hash.add(frame.line);
    }
    return hash.get();
}

std::uint64_t hash_of(std::string_view text) noexcept {
    Hash hash;
    for (const char character : text) hash.add(static_cast<unsigned char>(character));
    return hash.get();
}

}  // namespace

SiteRecord* SiteTable::find_or_add(std::span<const platform::ProgramFrame> frames) noexcept {
    frames = frames.first(std::min(frames.size(), SiteRecord::max_frames));
    const std::uint64_t hash = hash_of(frames);
    auto& known = addresses_.find(hash);
    std::uint32_t number = known.number;
    if (number == 0) [[unlikely]] {
        number = find_by_name(frames);
        if (number == 0) return nullptr;
        addresses_.set(known, {hash, number});
    }
    return records_in<SiteRecord>(*segment().header()) + number - 1;
}

std::uint32_t SiteTable::find_by_name(std::span<const platform::ProgramFrame> frames) noexcept {
    const SegmentHeader* header = segment().header();
    const auto used = [&] {
        return header->region<SiteRecord>().used.load(std::memory_order_relaxed);
    };
    if (header == nullptr || used() == 0) {
        if (segment().append<SiteRecord>([](SiteRecord&) {}) == 0) return 0;
        header = segment().header();
    }
    Hash hash;
    for (std::size_t i = 0; i != frames.size(); ++i) {
        words_[i] = word_of(frames[i]);
        hash.add(words_[i]);
    }
    auto& known = sites_.find(hash.get());
    if (known.number != 0) return known.number;
    if (used() == count_of<SiteRecord>) return other;
    const std::uint32_t number = segment().append<SiteRecord>([&](SiteRecord& site) {
        for (std::size_t i = 0; i != frames.size(); ++i) {
            site.frames[i].store(words_[i], std::memory_order_relaxed);
        }
        site.frame_count.store(frames.size(), std::memory_order_relaxed);
    });
    if (number == 0) return other;
    sites_.set(known, {hash.get(), number});
    return number;
}

// Code in no file keeps its bare address.
std::uint64_t SiteTable::word_of(const platform::ProgramFrame& frame) noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << SiteRecord::offset_bits) - 1;
    if (frame.python_code != nullptr) {
        char name[FrameNameRecord::bytes - 1];
        const std::size_t length = platform::name_python_code(frame.python_code, name, sizeof name);
        const std::uint64_t number = number_of_name({name, length});
        return number == 0 ? 0 : number << SiteRecord::offset_bits | frame.line;
    }
    const platform::CodeOrigin code = platform::find_code(frame.address);
    if (code.path == nullptr) return frame.address & mask;
    const std::uint64_t name = number_of_name(code.path);
    return name << SiteRecord::offset_bits | ((name == 0 ? frame.address : code.offset) & mask);
}

std::uint64_t SiteTable::number_of_name(std::string_view name) noexcept {
    const std::uint64_t hash = hash_of(name);
    auto& known = names_.find(hash);
    if (known.number == 0) {
        const std::uint32_t number = segment().append<FrameNameRecord>(
            [&](FrameNameRecord& record) { statistics::store_text(record.words, name); });
        if (number == 0) return 0;
        names_.set(known, {hash, number});
    }
    return known.number;
}

}  // namespace tensorpool::watch
