# What a cell records is read as its users read it.
target_link_libraries(strobe_tenants_test PRIVATE strobe_analyze strobe_trace)
# The stand-in for MPS's control program, where the tests find it.
file(COPY ${CMAKE_CURRENT_LIST_DIR}/mps DESTINATION ${CMAKE_BINARY_DIR}/tests)
