// A self-contained HTML page of a table and some plots.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "strobe/base/result.h"

namespace strobe::report {

// One line or cloud of points.
struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low, high;   // of y; empty: no bars
  std::vector<std::string> texts;  // shown on hovering; empty: none
  bool lines = false;              // else points
  bool dashed = false;
  int colour = -1;  // place in the page's palette, for series that belong together; -1: grey
};

struct Figure {
  std::string title, text;  // a sentence below the title
  std::string x_title, y_title;
  bool log = false;  // both axes
  std::vector<Series> series;
};

// Errors: those of plotly_for_script().
Result<std::string> figure_page(const std::string& title, const Table& table, const std::vector<Figure>& figures);

}  // namespace strobe::report
