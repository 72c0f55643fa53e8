//! The real krane binary against a real cluster and a scripted control plane.
