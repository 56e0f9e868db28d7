// gperftools' text format ("heap profile:"), as pprof, jeprof and google-pprof read it. Samples are
// written without scaling: readers scale them by heap_v2 and the interval.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "export/formats.hpp"
#include "export/loaded_code.hpp"
#include "inspect/report/report_text.hpp"
#include "inspect/symbols/frame_names.hpp"

namespace tensorpool::command::export_ {
namespace {

struct Sum {
    std::uint64_t blocks = 0, bytes = 0;          // alive
    std::uint64_t all_blocks = 0, all_bytes = 0;  // requested

    void add(const Lifetime& lifetime, Moment moment) {
        if (moment.is_alive(lifetime)) {
            ++blocks;
            bytes += lifetime.bytes;
        }
        if (lifetime.begin == Lifetime::none || lifetime.continues) return;
        ++all_blocks;
        all_bytes += lifetime.bytes;
    }
};

std::string counts(const Sum& sum) {
    return fmt::format("{:6}: {:8} [{:6}: {:8}] @", sum.blocks, sum.bytes, sum.all_blocks,
                       sum.all_bytes);
}

template <class Key, class Rank>
std::map<Key, Sum> add_up(const History& history, Moment moment, Rank key_of) {
    std::map<Key, Sum> sums;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (moment.has_begun(lifetime)) sums[key_of(i)].add(lifetime, moment);
    }
    return sums;
}

template <class Sums>
Sum all_of(const Sums& sums) {
    Sum all;
    for (const auto& [key, sum] : sums) {
        all.blocks += sum.blocks;
        all.bytes += sum.bytes;
        all.all_blocks += sum.all_blocks;
        all.all_bytes += sum.all_bytes;
    }
    return all;
}

std::uint64_t interval_of(const Recording& recording) {
    std::uint64_t interval = 0;
    for (const trace::RecordedProcess& process : recording.processes) {
        interval = std::max(interval, process.stack_interval);
    }
    return std::max<std::uint64_t>(interval, 1);
}

/// Symbols that stand for names: each name gets an artificial code address.
class Symbols {
public:
    std::uint64_t address_of(const std::string& name) {
        const auto [at, is_new] = addresses_.try_emplace(clean(name), addresses_.size() + 1);
        return at->second * distance;
    }
    std::string text() const {
        std::string lines;
        for (const auto& [name, number] : addresses_) {
            lines += fmt::format("{:#018x} {}\n", number * distance, name);
        }
        return lines;
    }

private:
    // Readers subtract 1 from addresses, so symbols are placed apart.
    static constexpr std::uint64_t distance = 0x1000;

    // A name must fit on one line. Two dashes would separate an inlined function from its caller.
    static std::string clean(const std::string& name) {
        std::string text = inspect::valid_utf8(name);
        std::ranges::replace_if(
            text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
        for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
            text.erase(at, 1);
        }
        return text.empty() ? "?" : text;
    }
    std::map<std::string, std::uint64_t> addresses_;
};

using SumsByStack = std::map<std::uint32_t, Sum>;

std::string heading(const SumsByStack& sums, const Recording& recording) {
    return fmt::format("heap profile: {} heap_v2/{}\n", counts(all_of(sums)),
                       interval_of(recording));
}

void write_addresses(const SumsByStack& sums, const Recording& recording, WrittenFile& file) {
    const LoadedCode code(recording);
    file.write(heading(sums, recording));
    for (const auto& [stack, sum] : sums) {
        file.write(counts(sum));
        bool is_innermost = true;
        for (const trace::RecordedFrame frame : inspect::frames_of_caller(recording, stack)) {
            // Readers subtract 1 from return addresses. The recorder has already done so.
            const std::uint64_t address = code.address_of(frame);
            if (address != 0) file.write(fmt::format(" {:#x}", address + (is_innermost ? 0 : 1)));
            is_innermost = false;
        }
        file.write("\n");
    }
    file.write("\nMAPPED_LIBRARIES:\n" + code.maps());
}

// Lines of Python have no addresses.
void write_names(const SumsByStack& sums, const Recording& recording, WrittenFile& file) {
    inspect::FrameNames names(recording);
    Symbols symbols;
    std::string lines;
    for (const auto& [stack, sum] : sums) {
        lines += counts(sum);
        bool is_innermost = true;
        for (const trace::RecordedFrame frame : inspect::frames_of_caller(recording, stack)) {
            const std::uint64_t address = symbols.address_of(to_short_text(names.name(frame)));
            lines += fmt::format(" {:#x}", address + (is_innermost ? 0 : 1));
            is_innermost = false;
        }
        lines += "\n";
    }
    file.write("--- symbol\nbinary=recording\n" + symbols.text() + "---\n--- heap\n");
    file.write(heading(sums, recording) + lines + "\nMAPPED_LIBRARIES:\n");
}

void write_by_stack(const History& history, Moment moment, WrittenFile& file) {
    const Recording& recording = history.recording();
    auto sums = add_up<std::uint32_t>(history, moment,
                                      [&](std::size_t i) { return history.facts(i).stack; });
    sums.erase(0);  // calls without a sampled stack
    const bool has_python = std::ranges::any_of(
        recording.modules, [](const auto& module) { return inspect::is_python(module.path); });
    (has_python ? write_names : write_addresses)(sums, recording, file);
}

void write_by_name(const History& history, Moment moment, WrittenFile& file) {
    const Recording& recording = history.recording();
    using SourceAndScope = std::pair<std::uint32_t, std::uint32_t>;
    const auto sums = add_up<SourceAndScope>(history, moment, [&](std::size_t i) {
        return SourceAndScope{history.lifetimes()[i].source, history.facts(i).scope};
    });
    Symbols symbols;
    std::string lines;
    for (const auto& [key, sum] : sums) {
        const auto [source, scope] = key;
        const std::string& outer = scope == BlockFacts::none ? std::string("[outside of scopes]")
                                                             : recording.sources[scope].name;
        lines += fmt::format("{} {:#x} {:#x}\n", counts(sum),
                             symbols.address_of(recording.sources[source].name),
                             symbols.address_of(outer) + 1);
    }
    file.write("--- symbol\nbinary=recording\n" + symbols.text() + "---\n");
    file.write("--- heap\n");
    file.write(fmt::format("heap profile: {} heapprofile\n", counts(all_of(sums))));
    file.write(lines + "\nMAPPED_LIBRARIES:\n");
}

}  // namespace

void write_heap_profile(const History& history, Moment moment, WrittenFile& file) {
    const bool has_stacks = history.recording().stacks.size() > 1;
    has_stacks ? write_by_stack(history, moment, file) : write_by_name(history, moment, file);
}

}  // namespace tensorpool::command::export_
