#pragma once

#include <string>

#include <tensorpool/model_file.hpp>

namespace tensorpool::command::model {

/// Returns a value for people, on one line. Long strings are cut. Arrays are shown by their size
/// ("array of 151,936 strings"), except for short arrays of whole numbers. Control characters of
/// the file are not yet escaped.
std::string text_of(const MetadataValue& value);

}  // namespace tensorpool::command::model
