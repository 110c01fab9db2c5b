// Package proof holds nothing but tests: what the engine promises about shared
// admission, told a second time and from the rules alone, and held against the
// engine at work on real servers.
//
// Five judges share this room. A model that is written from the rules follows
// a random course of requests, ends, cancels, deletions and changes of limits
// step by step and must agree with the database about every status, holder and
// line. A checker of histories looks at replicas from outside, killed and
// restarted under load, and asks whether some order of the operations explains
// what was seen. Replicas and workers that can be told where die and stand
// still at each moment between two effects, alone and in pairs, and whatever
// was requested has to run once all the same. Scenes with workers that die, stand
// still, leave or forget what they were given are played before three replicas that
// all look for such work, and each loss has to be decided by one of them, once. And
// every incident of other systems from which a rule was learnt has a test that bears
// its name.
//
// Each run draws anew which of the moments and pairs of moments it tries. All of
// them, and the longer courses, are tried by `make chaos`.
package proof
