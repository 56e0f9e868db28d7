#pragma once

/// @file
/// What `doctor` says of a machine.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "doctor/machine.hpp"

namespace tensorpool::command {

enum class Verdict {
    fine,
    note,   ///< worth knowing
    wrong,  ///< costs memory or time, or hinders a reader: the exit status is 1
};

struct Diagnosis {
    std::string what;  ///< such as "huge pages"
    Verdict verdict = Verdict::fine;
    std::string found;         ///< the figure, or the setting
    std::string advice;        ///< what it means and what to do; "" where there is nothing to say
    std::string command = {};  ///< what a shell does that by; "" where there is none
};

std::vector<Diagnosis> diagnose(const Machine& machine, Sizes sizes);

/// For people, with its last end of line; lines of at most 79 columns, but for commands.
std::string diagnosis_text(const std::vector<Diagnosis>& diagnoses);
/// One JSON object, without the end of line.
std::string diagnosis_json(const Diagnosis& diagnosis);
/// "fine", "note" or "wrong".
const char* to_string(Verdict verdict);

}  // namespace tensorpool::command
