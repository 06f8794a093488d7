// MCAP files as JSON and back, in the form of the format's conformance tests: {"type": "Schema", "fields": [["data",
// ["4", "5"]], ...]}, fields in the order of their names, numbers as strings, bytes as lists of them. Records of a
// chunk stand in its place; Chunk and MessageIndex records themselves are not listed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/mcap_records.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// Calls `line` with one JSON object a record, in the order of the file. What is damaged is left out and said in the
// list that is returned. Errors: kBadData where the file does not begin as an MCAP file does.
Result<std::vector<std::string>> list_records(ByteView file, const std::function<void(std::string_view)>& line);

// Writes the file of which {"records": [...], "meta": {"variant": {"features": [...]}}} is the listing. Of the records,
// those up to DataEnd are taken; the others follow from them and the features: ch chunks, mx message index, st
// statistics, rsh and rch schemas and channels repeated in the summary, ax, mdx and chx indexes of attachments,
// metadata and chunks, sum summary offsets, pad extra bytes at the end of records. Errors: kBadData, kIo.
Result<void> write_listing(std::string_view json, const std::filesystem::path& file);

}  // namespace strobe::sensors
