//! What FedHybrid's artefacts share: phones, networks, and what an iteration of one takes.
