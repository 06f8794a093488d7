# The git revision is written at build time, so that an incremental build never carries a stale one.
set(STROBE_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
add_custom_target(strobe_revision
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUT=${STROBE_GENERATED_DIR}/strobe/revision.inc
          -DVERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE} -DCOMPILER=${CMAKE_CXX_COMPILER_ID}\ ${CMAKE_CXX_COMPILER_VERSION}
          -P ${PROJECT_SOURCE_DIR}/cmake/write_revision.cmake
  BYPRODUCTS ${STROBE_GENERATED_DIR}/strobe/revision.inc
  COMMENT "" VERBATIM)
