#pragma once

/// @file
/// The checks of `doctor`, and their results.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "doctor/machine.hpp"

namespace tensorpool::command {

enum class Verdict {
    fine,
    note,   ///< worth knowing
    wrong,  ///< costs memory or time, or prevents reading: the exit status is 1
};

struct Diagnosis {
    std::string what;  ///< such as "huge pages"
    Verdict verdict = Verdict::fine;
    std::string found;         ///< the value, or the setting
    std::string advice;        ///< what it means and what to do; "" if there is nothing to add
    std::string command = {};  ///< a shell command that does so; "" if there is none
};

std::vector<Diagnosis> diagnose(const Machine& machine, Sizes sizes);

/// Formats the results for people, with a final newline. Lines have at most 79 columns, except
/// commands.
std::string diagnosis_text(const std::vector<Diagnosis>& diagnoses);
/// Formats one result as a JSON object, without a newline.
std::string diagnosis_json(const Diagnosis& diagnosis);
/// Returns "fine", "note" or "wrong".
const char* to_string(Verdict verdict);

}  // namespace tensorpool::command
