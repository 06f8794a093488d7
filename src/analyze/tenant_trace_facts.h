// What the facts of a trace of tenants say: who they are, which resources there are, how much their operations slow
// each other.
#pragma once

#include <string>

#include "analyze/tenant_trace.h"

namespace strobe::analyze {

// Everything of a TenantTrace that stands in facts. Errors: kBadData naming the fact.
Result<TenantTrace> read_tenant_facts(const trace::Timeline& timeline);

// A resource that no fact declares, by its name.
TenantResource undeclared_resource(const std::string& name, ServePolicy policy);

// The row of a class; an unknown one is added, with nothing measured of it.
int32_t class_named(TenantTrace& trace, const std::string& name);

}  // namespace strobe::analyze
