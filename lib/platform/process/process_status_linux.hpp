#pragma once

#include <cstdint>
#include <string>

#include "platform/files/system_files_linux.hpp"

namespace tensorpool::platform {

/// What /proc/<pid>/status shows to all users about the rights of a process (proc(5)).
class ProcessStatus {
public:
    /// Reads the status in `folder`, such as /proc/1.
    explicit ProcessStatus(const std::string& folder) {
        LineReader lines((folder + "/status").c_str());
        for (std::string_view line; lines.next(line);) take(line);
    }

    bool has_ids() const noexcept { return users_.known && groups_.known; }
    /// Returns whether the real, the effective and the saved user of the process are all `user`.
    /// The kernel requires all three before another process may look into it.
    bool runs_as_user(std::uint64_t user) const noexcept { return users_.are_all(user); }
    bool runs_as_group(std::uint64_t group) const noexcept { return groups_.are_all(group); }
    std::uint64_t permitted() const noexcept { return permitted_; }
    std::uint64_t effective() const noexcept { return effective_; }
    /// Returns the number of the process in its own name space; 0 if it is unknown.
    std::uint64_t innermost_number() const noexcept { return innermost_number_; }

private:
    struct Ids {
        bool known = false;
        std::uint64_t real = 0;
        std::uint64_t effective = 0;
        std::uint64_t saved = 0;

        bool are_all(std::uint64_t id) const noexcept {
            return known && real == id && effective == id && saved == id;
        }
    };

    void take(std::string_view line) {
        const std::string_view name = take_field(line, ':');
        if (name == "Uid") users_ = ids_of(line);
        if (name == "Gid") groups_ = ids_of(line);
        if (name == "CapPrm") permitted_ = hexadecimal(line);
        if (name == "CapEff") effective_ = hexadecimal(line);
        if (name == "NSpid") innermost_number_ = last_number(line);
    }

    static Ids ids_of(std::string_view line) {
        Ids ids{.known = true};
        take_field(line, '\t');
        for (std::uint64_t* const id : {&ids.real, &ids.effective, &ids.saved}) {
            const auto number = parse_number(take_field(line, '\t'));
            ids.known = ids.known && number.has_value();
            *id = number.value_or(0);
        }
        return ids;
    }

    static std::uint64_t hexadecimal(std::string_view text) noexcept {
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        std::uint64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number, 16);
        return number;
    }

    static std::uint64_t last_number(std::string_view line) noexcept {
        std::uint64_t last = 0;
        while (!line.empty()) last = parse_number(take_field(line, '\t')).value_or(last);
        return last;
    }

    Ids users_;
    Ids groups_;
    std::uint64_t permitted_ = 0;
    std::uint64_t effective_ = 0;
    std::uint64_t innermost_number_ = 0;
};

/// Returns whether two processes are in user name spaces with the same numbering of users, as far
/// as all users can see. The arguments are folders such as /proc/1.
inline bool same_user_space(const std::string& one, const std::string& other) {
    LineReader one_map((one + "/uid_map").c_str());
    LineReader other_map((other + "/uid_map").c_str());
    std::string_view one_line;
    std::string_view other_line;
    const bool one_has = one_map.next(one_line);
    return one_has == other_map.next(other_line) && one_line == other_line;
}

}  // namespace tensorpool::platform
