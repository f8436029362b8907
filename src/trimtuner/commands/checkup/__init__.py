"""What ``trimtuner doctor`` looks at, one room each: this machine, the record, and the engine of the job."""
