"""A training that ends after some minutes and goes on from its file where it was interrupted."""

import torch


class Run:
    """The weights, their running average, the optimizer, and how long all that took. `kept` is
    written to the file beside them."""

    def __init__(self, path, model, optimizer, slowest, **kept):
        """`slowest`: the share of the average that a step keeps, once there were enough of them."""
        self.path, self.model, self.optimizer = path, model, optimizer
        self.slowest, self.kept, self.seconds, self.step = slowest, kept, 0.0, 0
        self.average = {name: value.clone() for name, value in model.state_dict().items()}
        if path.exists():
            device = next(iter(self.average.values())).device
            saved = torch.load(path, weights_only=True, map_location=device)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            self.average, self.seconds, self.step = (saved[k] for k in ("average", "seconds", "step"))

    def save(self):
        partial = self.path.with_suffix(".partial")
        torch.save({"model": self.model.state_dict(), "average": self.average,
                    "optimizer": self.optimizer.state_dict(), "seconds": self.seconds,
                    "step": self.step, **self.kept}, partial)
        partial.replace(self.path)

    def descend(self, loss, learning_rate):
        """One step down `loss`; its value."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        keep = min(self.slowest, self.step / (self.step + 10))
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                self.average[name].lerp_(value, 1 - keep)
        return loss.item()
