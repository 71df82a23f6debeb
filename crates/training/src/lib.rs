//! Private gradient descent whose noise, batches, clipping and stopping time adapt while a filter keeps the budget.

pub mod batching;
pub mod checkpoint;
pub mod data;
pub mod gate;
pub mod gradient;
pub mod model;
pub mod noise;
pub mod optimizer;
pub mod pca;
pub mod personal;
pub mod policy;
pub mod run;
pub mod selection;
mod vector;
