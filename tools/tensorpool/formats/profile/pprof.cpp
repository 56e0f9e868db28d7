// The messages of https://github.com/google/pprof/blob/main/proto/profile.proto. The numbers of
// fields are from there.

#include <fmt/format.h>

#include <tuple>

#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

// Readers subtract 1 from addresses, so symbols are placed apart.
constexpr std::uint64_t distance = 0x1000;

// A name must fit on one line. Two dashes would separate an inlined function from its caller.
std::string clean(const std::string& name) {
    std::string text = valid_utf8(name);
    std::ranges::replace_if(
        text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
    for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
        text.erase(at, 1);
    }
    return text.empty() ? "?" : text;
}

struct SampleType {
    Value value;
    const char* blocks;
    const char* bytes;
};
constexpr std::array sample_types = {
    SampleType{Value::allocated, "alloc_objects", "alloc_space"},
    SampleType{Value::peak, "peak_objects", "peak_space"},
    SampleType{Value::live, "inuse_objects", "inuse_space"},
};

// Values are signed.
std::uint64_t limited(std::uint64_t value) {
    return std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max());
}

class Writer {
public:
    explicit Writer(const NamedProfile& named) : named_(named) { index_of(""); }

    std::string write() {
        for (const SampleType& type : sample_types) {
            profile_.add(1, value_type(type.blocks, "count"));
            profile_.add(1, value_type(type.bytes, "bytes"));
            if (type.value == named_.value) profile_.add(14, index_of(type.bytes));
        }
        for (const ProfileSite& site : named_.profile.sites) profile_.add(2, sample(site));
        profile_.add(9, limited(named_.profile.time_unix_ns));
        profile_.add(11, value_type("space", "bytes"));
        profile_.add(12, limited(named_.profile.interval));
        for (const std::string* const text : in_order()) profile_.add(6, *text);
        return profile_.bytes();
    }

private:
    std::uint64_t index_of(const std::string& text) {
        return strings_.try_emplace(valid_utf8(text), strings_.size()).first->second;
    }
    std::vector<const std::string*> in_order() const {
        std::vector<const std::string*> texts(strings_.size());
        for (const auto& [text, index] : strings_) texts[index] = &text;
        return texts;
    }

    ProtocolBuffer value_type(const char* type, const char* unit) {
        ProtocolBuffer message;
        message.add(1, index_of(type));
        message.add(2, index_of(unit));
        return message;
    }

    ProtocolBuffer sample(const ProfileSite& site) {
        std::vector<std::uint64_t> calls;
        for (const std::uint32_t index : site.stack)
            calls.push_back(location(named_.frames[index]));
        if (calls.empty()) calls.push_back(without_stack());
        std::ranges::reverse(calls);
        std::vector<std::uint64_t> values;
        for (const SampleType& type : sample_types) {
            values.push_back(blocks_of(site, type.value));
            values.push_back(limited(bytes_of(site, type.value)));
        }
        ProtocolBuffer message;
        message.add(1, calls);
        message.add(2, values);
        return message;
    }

    std::uint64_t without_stack() {
        symbols::FrameName name;
        name.location.function = stack_of(named_, {})[0];
        return location(name);
    }

    /// Returns the number of a location. A new one is added with its function.
    std::uint64_t location(const symbols::FrameName& frame) {
        const std::uint64_t called = function(frame);
        const auto line = static_cast<std::uint64_t>(std::max(frame.location.line, 0));
        const auto [at, is_new] =
            locations_.try_emplace(std::tuple(called, line), locations_.size() + 1);
        if (!is_new) return at->second;
        ProtocolBuffer lines;
        lines.add(1, called);
        lines.add(2, line);
        ProtocolBuffer message;
        message.add(1, at->second);
        message.add(4, lines);
        profile_.add(4, message);
        return at->second;
    }

    std::uint64_t function(const symbols::FrameName& frame) {
        const bool is_known = !frame.location.function.empty();
        const std::uint64_t name =
            index_of(is_known ? frame.location.function : to_short_text(frame));
        const std::uint64_t file =
            index_of(frame.location.file.empty() ? frame.module : frame.location.file);
        const auto [at, is_new] =
            functions_.try_emplace(std::tuple(name, file), functions_.size() + 1);
        if (!is_new) return at->second;
        ProtocolBuffer message;
        message.add(1, at->second);
        message.add(2, name);
        message.add(3, name);
        message.add(4, file);
        profile_.add(5, message);
        return at->second;
    }

    using Numbers = std::map<std::tuple<std::uint64_t, std::uint64_t>, std::uint64_t>;
    const NamedProfile& named_;
    ProtocolBuffer profile_;
    std::map<std::string, std::uint64_t> strings_;
    Numbers locations_;  // by function and line
    Numbers functions_;  // by name and file
};

}  // namespace

std::string counts(const HeapSum& sum) {
    return fmt::format("{:6}: {:8} [{:6}: {:8}] @", sum.blocks, sum.bytes, sum.all_blocks,
                       sum.all_bytes);
}

void NamedHeap::add(const HeapSum& sum, const std::vector<std::string>& innermost_first) {
    all_ += sum;
    lines_ += counts(sum);
    // Readers subtract 1 from return addresses.
    std::uint64_t beyond = 0;
    for (const std::string& name : innermost_first) {
        lines_ += fmt::format(" {:#x}", address_of(name) + beyond);
        beyond = 1;
    }
    lines_ += '\n';
}

std::string NamedHeap::text(std::string_view kind) const {
    std::string text = "--- symbol\nbinary=recording\n";
    for (const auto& [name, address] : addresses_) {
        text += fmt::format("{:#018x} {}\n", address, name);
    }
    return text + fmt::format("---\n--- heap\nheap profile: {} {}\n{}\nMAPPED_LIBRARIES:\n",
                              counts(all_), kind, lines_);
}

std::uint64_t NamedHeap::address_of(const std::string& name) {
    const std::uint64_t next = (addresses_.size() + 1) * distance;
    return addresses_.try_emplace(clean(name), next).first->second;
}

std::string to_pprof(const NamedProfile& named) {
    return Writer(named).write();
}

std::string to_pprof_legacy(const NamedProfile& named) {
    NamedHeap heap;
    for (const ProfileSite& site : named.profile.sites) {
        std::vector<std::string> calls = stack_of(named, site);
        std::ranges::reverse(calls);
        heap.add({.blocks = blocks_of(site, named.value),
                  .bytes = bytes_of(site, named.value),
                  .all_blocks = blocks_of(site, Value::allocated),
                  .all_bytes = site.allocated_bytes},
                 calls);
    }
    return heap.text("heapprofile");
}

}  // namespace tensorpool::command::profile
