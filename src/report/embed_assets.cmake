# Writes OUT, a C++ file with the text of the page's files as string_views.
# Called with -DOUT, -DPAGE, -DSTYLE and -DSCRIPTS (joined in this order, parted by "|").
function(literal name text)
  # GCC has no limit on the length of a raw string literal; the delimiter occurs nowhere in the page.
  file(APPEND ${OUT} "const std::string_view ${name} = R\"strobe_page(${text})strobe_page\";\n")
endfunction()

file(WRITE ${OUT} "#include \"report/assets.h\"\n\nnamespace strobe::report::assets {\n")
file(READ ${PAGE} page)
literal(kPage "${page}")
file(READ ${STYLE} style)
literal(kStyle "${style}")
string(REPLACE "|" ";" SCRIPTS "${SCRIPTS}")
set(joined "")
foreach(script IN LISTS SCRIPTS)
  file(READ ${script} text)
  string(APPEND joined "${text}")
endforeach()
literal(kScript "${joined}")
file(APPEND ${OUT} "}  // namespace strobe::report::assets\n")
